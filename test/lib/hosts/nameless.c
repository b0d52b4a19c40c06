/* A library without a name of its own (DT_SONAME), for unit/objects_of_the_start_stay.c. */

int nameless_one(void);

int nameless_one(void)
{
  return 1;
}
