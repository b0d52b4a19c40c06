/*
** Public C API of sysprof, the sampling profiler inside LuaJIT.
** Source-compatible with programs written for Tarantool's lmisclib.h.
*/

#ifndef _LMISCLIB_H
#define _LMISCLIB_H

#include <stddef.h>
#include <stdint.h>

#include "lua.h"

#ifdef __cplusplus
extern "C" {
#endif

/* API for obtaining LuaJIT internals lives in the Lua table of this name. */
#define LUAM_MISCLIBNAME "misc"

#ifndef LUAMISC_API
#define LUAMISC_API LUA_API
#endif

/* Opens the library "misc"; luaL_openlibs does so, too. */
LUALIB_API int luaopen_misc(lua_State *L);

/* -- Status codes ----------------------------------------------------------- */

#define PROFILE_SUCCESS 0 /* Done. */
#define PROFILE_ERRUSE  1 /* Bad option or missing callback. */
#define PROFILE_ERRRUN  2 /* Running already, or not running. */
#define PROFILE_ERRMEM  3 /* Out of memory. */
#define PROFILE_ERRIO   4 /* Timer, file or stream failed: see errno. */

/* -- Modes ------------------------------------------------------------------ */

/* Counters only: no stream, no callbacks, no buffer. */
#define LUAM_SYSPROF_DEFAULT 0
/* Counters, and the innermost frame of both stacks of each sample. */
#define LUAM_SYSPROF_LEAF 1
/* Counters, and both stacks of each sample. */
#define LUAM_SYSPROF_CALLGRAPH 2

/* -- Clocks ----------------------------------------------------------------- */

/* The thread's CPU time. Beyond the rate of the kernel's tick only where perf's clock is
** allowed; else it stays at that.
*/
#define LUAM_SYSPROF_CLOCK_CPU 0
/* Real time, also while the thread sleeps; a system call may return early. */
#define LUAM_SYSPROF_CLOCK_WALL 1

/* -- Threads ---------------------------------------------------------------- */

/* The thread that calls luaM_sysprof_start. */
#define LUAM_SYSPROF_THREADS_OWN 0
/* All threads of the process, also those that begin later. What runs the VM has
** its Lua stack, on whichever thread that is; the others have their host stack.
*/
#define LUAM_SYSPROF_THREADS_ALL 1

/* -- Flush ------------------------------------------------------------------- */

/* The writer runs in the signal handler. */
#define LUAM_SYSPROF_FLUSH_HANDLER 0
/* It runs on the thread of the VM, before that interprets an instruction. Samples that
** find all buffers full before then are lost and counted. With THREADS_ALL the same as
** FLUSH_THREAD.
*/
#define LUAM_SYSPROF_FLUSH_VM 1
/* It runs on a thread of the profiler. */
#define LUAM_SYSPROF_FLUSH_THREAD 2
/* With FLUSH_VM and FLUSH_THREAD the buffer is divided into so many equal parts. */
#define LUAM_SYSPROF_FLUSH_BUFFERS 4

/* Runs in a child of fork() that the profiled thread made, outside of the handler.
** Returns what the child's profile has as ctx, for the same writer and on_stop
** and with the child's copy of buf; NULL if the child is not to be profiled.
*/
typedef void *(*luam_Sysprof_on_fork)(void *ctx);

/* Options of luaM_sysprof_start. Clear the struct first: new fields are only
** appended, and zero is their default.
*/
struct luam_Sysprof_Options {
  uint8_t mode;                 /* LUAM_SYSPROF_DEFAULT, _LEAF or _CALLGRAPH. */
  uint64_t interval;            /* Sampling interval in milliseconds, above 0. More than
			** a day counts as a day. */
  uint8_t *buf;                 /* Stream buffer, the caller's until on_stop. */
  size_t len;                   /* Its size in bytes, at least LUAM_SYSPROF_BUF_MIN. */
  void *ctx;                    /* Passed to the writer and to on_stop. */
  uint8_t clock;                /* LUAM_SYSPROF_CLOCK_*. */
  uint64_t interval_ns;         /* If not 0: the interval in nanoseconds instead. */
  const char *clocks;           /* If not NULL: clocks and events by name, instead of
			** clock. A list as in "cpu,page-faults". */
  uint64_t period;              /* Occurrences between two samples of an event, 0 for the
			** default of each. */
  int signo;                    /* Signal of the clocks, 0 for SIGPROF; SIGURG for those of
			** perf, and for cpu above the rate of the kernel's tick. */
  uint8_t jitter;               /* 1: vary each interval at random. */
  uint8_t threads;              /* LUAM_SYSPROF_THREADS_*. */
  luam_Sysprof_on_fork on_fork; /* NULL: children of fork() are not profiled. */
  uint32_t session;             /* Number in a stream that several sessions share, else 0;
			** THREADS_ALL takes the numbers after it, too. */
  uint8_t flush;                /* LUAM_SYSPROF_FLUSH_*. */
};

/* Smallest buffer that the modes LEAF and CALLGRAPH accept, in bytes, and smallest
** part of one.
*/
#define LUAM_SYSPROF_BUF_MIN 1024

/* Samples by the state of the VM, and their sum. */
struct luam_Sysprof_Counters {
  uint64_t vmst_interp; /* In the interpreter; Lua stack not known. */
  uint64_t vmst_lfunc;  /* In a Lua function, interpreted. */
  uint64_t vmst_ffunc;  /* In a builtin function. */
  uint64_t vmst_cfunc;  /* In a C function, or in the host program. */
  uint64_t vmst_gc;     /* Collecting garbage. */
  uint64_t vmst_exit;   /* Leaving a trace. */
  uint64_t vmst_record; /* Recording a trace. */
  uint64_t vmst_opt;    /* Optimising a trace. */
  uint64_t vmst_asm;    /* Assembling a trace. */
  uint64_t vmst_trace;  /* Running compiled code. */
  uint64_t samples;     /* All samples. */
};

/* Kinds of broken stacks, the indices of lua_broken and host_broken below. */
#define LUAM_SYSPROF_BROKEN_NO_BASE    0 /* No frame base fits the registers. */
#define LUAM_SYSPROF_BROKEN_CHAIN      1 /* A link between frames is not valid. */
#define LUAM_SYSPROF_BROKEN_STACK_MOVE 2 /* The Lua stack was being moved. */
#define LUAM_SYSPROF_BROKEN_FAULT      3 /* An address is not readable. */
#define LUAM_SYSPROF_BROKEN_NO_CFI     4 /* Code without unwind information. */
#define LUAM_SYSPROF_BROKEN_NOT_VM     5 /* The thread does not run the VM now. */
#define LUAM_SYSPROF_BROKEN_JOIN       6 /* Both sides do not fit together. */
#define LUAM_SYSPROF_BROKEN_TRACE      7 /* Unknown position in compiled code. */
#define LUAM_SYSPROF_BROKEN__MAX       8

/* What a profile says about itself: totals since its start. */
struct luam_Sysprof_SelfReport {
  char clock[192];      /* Clocks and events as they are used, a list. */
  double asked_hz;      /* Samples a second that were asked for, of CPU time or,
			** for wall, of time; 0 for events. */
  double achieved_hz;   /* Samples a second that were taken. */
  uint64_t samples;     /* All samples, the lost ones included. */
  uint64_t overruns;    /* Ticks that were merged into another one's signal. */
  uint64_t lost_buffer; /* Samples lost: they do not fit into the buffer. */
  uint64_t lost_writer; /* The writer failed, or has ended the stream. */
  uint64_t lost_nested; /* Ticks lost: within another one. */
  uint64_t throttled;   /* Ticks left out: the sample before took too long. */
  uint64_t lua_broken[LUAM_SYSPROF_BROKEN__MAX];  /* Lua stacks cut short. */
  uint64_t host_broken[LUAM_SYSPROF_BROKEN__MAX]; /* Host stacks cut short. */
  uint64_t handler_mean_ns;                       /* Time in the handler for a sample, */
  uint64_t handler_p99_ns;                        /* for 99 % of them at most, */
  uint64_t handler_max_ns;                        /* and for the longest. */
  uint64_t cpu_us;                                /* CPU time of the profiled threads. */
  uint64_t wall_us;        /* Time since the start, until the stop. */
  uint32_t sessions;       /* Threads that were profiled at some time. */
  uint32_t replaced;       /* 1: the program has set another handler for the
			** signal meanwhile, so samples may be missing. */
  uint64_t lost_queue;     /* Samples lost: all buffers wait to be written. */
  uint32_t unsampled;      /* Threads that could not be sampled, for lack of memory,
			** timers or descriptors, or that blocked the signal;
			** at most at a time. */
  uint64_t signal_mean_ns; /* Interrupt and signal of a sample. 0: not measured, as of
			   ** clocks with 5,000 samples a second or fewer. */
};

/* -- Callbacks -------------------------------------------------------------- */

/* Takes len bytes of the stream at *data. Runs in the signal handler, so it
** must be async-signal-safe (signal-safety(7)); the first call is made by
** luaM_sysprof_start, which fails if it does, and the last by
** luaM_sysprof_stop. Returns the number of bytes taken, 0 on error; more than len
** counts as len, but (size_t)-1 as an error. May set
** *data to another buffer of the same size, to be filled next, or to NULL to
** end the stream; samples after that are counted as lost.
** With FLUSH_VM and FLUSH_THREAD it runs outside of the handler, on one thread at a
** time for each sampled thread, and must not use the API, nor set *data but to NULL.
*/
typedef size_t (*luam_Sysprof_writer)(const void **data, size_t len, void *ctx);

/* Runs once, outside the handler, when profiling that was started stops (also by
** lua_close or exit), and once in a child of fork that ends the profile it
** inherited; nothing is written there. buf is the current stream buffer or
** NULL. Returns 0 on success.
*/
typedef int (*luam_Sysprof_on_stop)(void *ctx, uint8_t *buf);

/* Walks the host stack, innermost frame first, and calls frame_writer with
** frame_no = 1, 2, .. and each frame's code address, until that returns NULL.
** Runs in the signal handler, on top of it: frames of the handler, which end
** at the interrupted address, are left out of the profile.
*/
typedef void (*luam_Sysprof_backtracer)(void *(*frame_writer)(int frame_no, void *addr));

/* -- Functions -------------------------------------------------------------- */

/* The setters hold for every later start in this process, none of them changes
** a running profiler. They return PROFILE_SUCCESS, or PROFILE_ERRUSE where NULL
** is not allowed. Writer and on_stop must have been set before luaM_sysprof_start in
** the modes LEAF and CALLGRAPH.
*/
LUAMISC_API int luaM_sysprof_set_writer(luam_Sysprof_writer writer);
LUAMISC_API int luaM_sysprof_set_on_stop(luam_Sysprof_on_stop on_stop);
/* NULL selects the built-in backtracer, which is the default. */
LUAMISC_API int luaM_sysprof_set_backtracer(luam_Sysprof_backtracer backtracer);

/* Starts profiling the VM of L on the calling thread. Copies *opt.
** PROFILE_ERRUSE: unknown mode or clock, interval 0 or too large, a signal that
** cannot be used, or, in the modes LEAF and CALLGRAPH, no buffer, writer or on_stop.
** PROFILE_ERRRUN: this VM is profiled already, jit.profile runs, or
** all clocks that a process may have are in use. PROFILE_ERRMEM, PROFILE_ERRIO: errno
** says more, for example that a clock is not allowed. luaM_sysprof_error says why. Not
** in a handler, as all functions here; on any thread that may use the VM.
*/
LUAMISC_API int luaM_sysprof_start(lua_State *L, const struct luam_Sysprof_Options *opt);

/* Starts profiling the VM of L, as luaM_sysprof_start does, into the file path. Copies
** *opt and path; opt may be NULL for all stacks, a sample each 10 ms. The profiler owns
** file, buffer and writer: buf, len, ctx, session and on_fork of *opt and the setters
** for writer and on_stop do not count. flush 0 means LUAM_SYSPROF_FLUSH_VM.
** luaM_sysprof_stop, lua_close or exit complete and close the file. An empty file or
** a profile is overwritten, no other one; a new file is its owner's only.
** PROFILE_ERRUSE: also no path, or the mode DEFAULT. PROFILE_ERRIO: also a file that
** cannot be opened or written; errno says why, and luaM_sysprof_error begins with the
** path. A failed start leaves no new file. Same threads as luaM_sysprof_start.
*/
LUAMISC_API int luaM_sysprof_start_path(lua_State *L,
					const struct luam_Sysprof_Options *opt,
					const char *path);

/* Why the last luaM_sysprof_start or luaM_sysprof_start_path of the calling thread
** failed: one sentence with the reason and, where there is one, the remedy; empty if it
** did not fail. Never NULL, not to be freed, valid until the thread's next start. Not
** in a handler.
*/
LUAMISC_API const char *luaM_sysprof_error(void);

/* Stops profiling the VM of L, completes the stream and calls on_stop.
** PROFILE_ERRRUN: it is not profiled. PROFILE_ERRIO: part of the stream could
** not be written, or on_stop failed; profiling has stopped all the same.
*/
LUAMISC_API int luaM_sysprof_stop(lua_State *L);

/* Says that the calling thread runs the VM of L from now on, not the one that has
** run it so far. With THREADS_OWN it is the one that is sampled from now on.
** PROFILE_ERRRUN: the VM is not profiled. PROFILE_ERRIO: this thread cannot have
** the profile's clocks, errno says why; the profile goes on without samples.
*/
LUAMISC_API int luaM_sysprof_moved(lua_State *L);

/* Copies the counters of the profile that was started last in this process,
** running or stopped; all zero before the first start.
*/
LUAMISC_API int luaM_sysprof_report(struct luam_Sysprof_Counters *counters);

/* Fills in *r with what the profile of the VM of L, or if L is NULL the one that
** was started last in this process, says about itself, running or stopped; all
** zero before the first start. size is sizeof(*r): fields that this library does
** not know are cleared. Any thread, not in a handler. PROFILE_ERRUSE: no r.
*/
LUAMISC_API int luaM_sysprof_selfreport(lua_State *L, struct luam_Sysprof_SelfReport *r,
					size_t size);

#ifdef __cplusplus
}
#endif

#endif
