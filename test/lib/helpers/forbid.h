/*
** Seccomp filter that answers one system call in place of the kernel.
*/

#ifndef FORBID_H
#define FORBID_H

#include <stddef.h>
#include <stdint.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

/* Answer call number nr by SECCOMP_RET_*. Returns 0 if the kernel takes no filter. */
static inline int forbid_call(uint32_t nr, uint32_t answer)
{
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, answer),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	 prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

#endif
