/*
** Names of glibc 2.38 for strtol(3) and its like. Its headers replace the names in programs
** that define _GNU_SOURCE. The new functions also read "0b1", if the base is 0 or 2.
** Context: any thread.
*/

#define JUMP(name) \
  __asm__(".text\n\t.globl __isoc23_" name "\n\t.hidden __isoc23_" name "\n\t" \
	  ".type __isoc23_" name ",@function\n__isoc23_" name ":\n\t" \
	  "endbr64\n\tjmp *" name "@GOTPCREL(%rip)\n\t" \
	  ".size __isoc23_" name ",.-__isoc23_" name);

JUMP("strtol")
JUMP("strtoll")
JUMP("strtoul")
JUMP("strtoull")
JUMP("sscanf")
JUMP("fscanf")
