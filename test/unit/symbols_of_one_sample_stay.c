/* All functions of one sample get definitions, however many functions the session has
** seen. Within a sample the table replaces none of them.
*/

#include "made_functions.h"

#define DEPTH  (FRAMELIST_LEAF + FRAMELIST_ROOT)
#define PROTOS (FUNCTAB_FUNCS + DEPTH)

static MadeName chunkname;
static MadeProto proto[PROTOS];

int main(void)
{
  static uint32_t fid[DEPTH];
  int i, undefined = 0;
  made_name(&chunkname, "@file");
  for (i = 0; i < PROTOS; i++) made_proto(&proto[i], &chunkname, i, 1);
  made_begin();
  for (i = 0; i < FUNCTAB_FUNCS; i++) CHECK(made_id(&proto[i]) != 0);
  /* One sample: functions known for long, with new ones among them. */
  for (i = 0; i < DEPTH; i++) fid[i] = made_id(&proto[i & 1 ? FUNCTAB_FUNCS + i : i]);
  for (i = 0; i < DEPTH; i++) undefined += made_define(fid[i], 1) == 0;
  CHECK_EQ(undefined, 0);
  return check_status();
}
