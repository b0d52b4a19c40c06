/* Of a flag that a text gives twice, the last value counts, and flags of the same field stay.
** BASE: none, its modules know no VM
*/

#include <string.h>

#include "lj_obj.h"
#include "profile/output/lj_outfile.h"
#include "profile/start/lj_optname.h"
#include "profile/start/lj_opttext.h"
#include "check.h"

static void take(const char *name, const char *s, OptionValues *v)
{
  const OptionSpec *o = lj_optname_find(name, strlen(name), OPTION_LUA);
  CHECK(o != NULL);
  CHECK(o && lj_opttext_take(o, s, v));
}

int main(void)
{
  OptionValues v;
  memset(&v, 0, sizeof(v));
  take("gc", "true", &v);
  CHECK_EQ(v.opt.gc, 1);
  take("gc", "false", &v);
  CHECK_EQ(v.opt.gc, 0);
  take("gc", "true", &v);
  CHECK_EQ(v.opt.gc, 1);
  take("force", "true", &v);
  take("regular", "true", &v);
  take("force", "false", &v);
  CHECK_EQ(v.fo.how, OUTFILE_REGULAR);
  return check_status();
}
