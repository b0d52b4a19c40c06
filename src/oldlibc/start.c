/*
** __libc_start_main, for programs: runs the program's constructors.
** Context: the start of a program, before its constructors.
**
** Before glibc 2.34, a function of the program ran them, and the program's start passed its
** address. The start file of a newer glibc passes NULL.
*/

#include <stddef.h>

typedef void Init(int argc, char **argv, char **env);

extern int libc_start(int (*)(int, char **, char **), int, char **, Init *, void (*)(void),
		      void (*)(void), void *);
__asm__(".symver libc_start,__libc_start_main@GLIBC_2.2.5");

/* Of the start files and the linker. */
extern void _init(void);
extern Init *__init_array_start[], *__init_array_end[];

static void init(int argc, char **argv, char **env)
{
  Init **f;
  _init();
  for (f = __init_array_start; f < __init_array_end; f++) (*f)(argc, argv, env);
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
		      Init *given, void (*fini)(void), void (*rtld_fini)(void),
		      void *stack_end);
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
		      Init *given, void (*fini)(void), void (*rtld_fini)(void),
		      void *stack_end)
{
  return libc_start(main, argc, argv, given ? given : init, fini, rtld_fini, stack_end);
}
