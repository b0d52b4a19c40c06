/*
** Public C API of sysprof, the sampling profiler inside LuaJIT, and of its memory profiler.
** Context: any thread that may use the VM, outside of signal handlers.
**
** Programs that were written for Tarantool's lmisclib.h compile unchanged.
*/

#ifndef _LMISCLIB_H
#define _LMISCLIB_H

#include <stddef.h>
#include <stdint.h>

#include "lua.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Name of the Lua table that holds the library. */
#define LUAM_MISCLIBNAME "misc"

#ifndef LUAMISC_API
#define LUAMISC_API LUA_API
#endif

/* Opens the library "misc". luaL_openlibs calls it, too. */
LUALIB_API int luaopen_misc(lua_State *L);

/* -- Status codes ----------------------------------------------------------- */

#define PROFILE_SUCCESS 0 /* Done. */
#define PROFILE_ERRUSE  1 /* Bad option or missing callback. */
#define PROFILE_ERRRUN  2 /* The profile runs already, or does not run. */
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

/* CPU time of the thread. A rate above the kernel's tick needs perf_event_open. Where the
** system forbids perf_event_open, the clock runs at the rate of the tick.
*/
#define LUAM_SYSPROF_CLOCK_CPU 0
/* Real time: CPU time, and waits, which a background thread measures. Wakes no thread. The clock
** "wall-signal" ticks by real time; its signal may end a system call early.
*/
#define LUAM_SYSPROF_CLOCK_WALL 1

/* -- Threads ---------------------------------------------------------------- */

/* The thread that calls luaM_sysprof_start. */
#define LUAM_SYSPROF_THREADS_OWN 0
/* All threads of the process, also those that begin later. Samples of the thread that
** runs the VM have a Lua stack. Samples of the other threads have a host stack only.
*/
#define LUAM_SYSPROF_THREADS_ALL 1

/* -- Flush ------------------------------------------------------------------- */

/* The writer runs in the signal handler. */
#define LUAM_SYSPROF_FLUSH_HANDLER 0
/* The writer runs on the VM thread, before the VM interprets an instruction. While all
** buffers are full, samples are lost and counted. THREADS_ALL turns it into FLUSH_THREAD.
*/
#define LUAM_SYSPROF_FLUSH_VM 1
/* The writer runs on a background thread of the profiler, at least once a second
** while it has samples.
*/
#define LUAM_SYSPROF_FLUSH_THREAD 2
/* Number of equal parts that FLUSH_VM and FLUSH_THREAD divide the buffer into. */
#define LUAM_SYSPROF_FLUSH_BUFFERS 4

/* -- Backtracer --------------------------------------------------------------- */

/* The profiler's own tables only: the section .eh_frame of the program and its libraries. */
#define LUAM_SYSPROF_BACKTRACER_OWN 0
/* Also section .debug_frame of their files or debug files, by libunwind, at the start and for
** objects that the program loads later. Needs the module libluajit-sysprof-libunwind.so.
*/
#define LUAM_SYSPROF_BACKTRACER_LIBUNWIND 1

/* Runs in a child of fork() after the profiled thread forked, outside of the handler.
** Returns the ctx of the child's profile, or NULL to leave the child unprofiled. The
** child's profile uses the same writer and on_stop, and the child's copy of buf.
*/
typedef void *(*luam_Sysprof_on_fork)(void *ctx);

/* Options of luaM_sysprof_start. Clear the struct first: later versions append fields,
** and their default is zero.
*/
struct luam_Sysprof_Options {
  uint8_t mode;         /* LUAM_SYSPROF_DEFAULT, _LEAF or _CALLGRAPH. */
  uint64_t interval;    /* Sampling interval in milliseconds, above 0. A value
			** above one day counts as one day. */
  uint8_t *buf;         /* Stream buffer. The caller keeps it alive until on_stop. */
  size_t len;           /* Size of buf in bytes, at least LUAM_SYSPROF_BUF_MIN. */
  void *ctx;            /* Passed to the writer and to on_stop. */
  uint8_t clock;        /* LUAM_SYSPROF_CLOCK_*. */
  uint64_t interval_ns; /* If not 0: the interval in nanoseconds, instead of interval. */
  const char *clocks;   /* If not NULL: names of clocks and events, instead of
			** clock. Commas separate them: "cpu,page-faults". */
  uint64_t period;      /* Occurrences of an event from one sample to the next. 0
			** selects the default of each event. */
  int signo;            /* Signal of the clocks. 0 selects the first of SIGURG, SIGPROF,
			** SIGVTALRM and SIGSTKFLT for which the program has no
			** handler. Clocks of perf_event_open try SIGURG first. */
  uint8_t jitter;       /* 1: vary each interval at random. */
  uint8_t threads;      /* LUAM_SYSPROF_THREADS_*. */
  luam_Sysprof_on_fork on_fork; /* NULL: children of fork() are not profiled. */
  uint32_t session;             /* Number of the session in a stream that several sessions
			** share, else 0. THREADS_ALL uses the numbers after it. */
  uint8_t flush;                /* LUAM_SYSPROF_FLUSH_*. */
  uint8_t prefer_tick;          /* 1: where timer interrupts at interval would take over
			   ** 2 % of the time, the clock cpu samples at the rate of
			   ** the kernel's tick. */
  uint8_t gc;                   /* 1: collect garbage before a dump and before the end, if
			   ** they come from code of the VM or from lua_close. */
  uint8_t backtracer;           /* LUAM_SYSPROF_BACKTRACER_*. */
};

/* Smallest buffer that the modes LEAF and CALLGRAPH accept, in bytes. Each event after the
** first needs 140 bytes more. FLUSH_VM and FLUSH_THREAD need as much for each part.
*/
#define LUAM_SYSPROF_BUF_MIN 1024

/* Samples by the state of the VM, and their sum. */
struct luam_Sysprof_Counters {
  uint64_t vmst_interp; /* In the interpreter; the Lua stack is unknown. */
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
#define LUAM_SYSPROF_BROKEN_FAULT      3 /* Memory of the stack is not readable. */
#define LUAM_SYSPROF_BROKEN_NO_CFI     4 /* Code without unwind information. */
#define LUAM_SYSPROF_BROKEN_NOT_VM     5 /* The thread does not run the VM. */
#define LUAM_SYSPROF_BROKEN_JOIN       6 /* Lua stack and host stack do not fit together. */
#define LUAM_SYSPROF_BROKEN_TRACE      7 /* Unknown position in compiled code. */
#define LUAM_SYSPROF_BROKEN__MAX       8

/* Self-report of a profile: totals since its start. */
struct luam_Sysprof_SelfReport {
  char clock[192];      /* Names of the clocks and events in use, a list. */
  double asked_hz;      /* Requested samples per second of CPU time, for
			** wall-signal per second of real time. 0 for events. */
  double achieved_hz;   /* Samples per second that the profile took. */
  uint64_t samples;     /* All samples, including the lost ones. */
  uint64_t overruns;    /* Ticks that the kernel merged into an earlier signal. */
  uint64_t lost_buffer; /* Samples lost: the buffer was too small for them. */
  uint64_t lost_writer; /* Samples lost: the writer failed or ended the stream. */
  uint64_t lost_nested; /* Samples lost: the profiler was writing the session, the
			** signal stack was small, or the thread blocked the signal. */
  uint64_t throttled;   /* Ticks left out, so that ticks take at most a third of the
			** time. */
  uint64_t lua_broken[LUAM_SYSPROF_BROKEN__MAX];  /* Lua stacks cut short. */
  uint64_t host_broken[LUAM_SYSPROF_BROKEN__MAX]; /* Host stacks cut short. */
  uint64_t handler_mean_ns; /* Time in the handler per sample: mean, */
  uint64_t handler_p99_ns;  /* 99th percentile, */
  uint64_t handler_max_ns;  /* and maximum. */
  uint64_t cpu_us;          /* CPU time of the threads, sampled or not. */
  uint64_t wall_us;         /* Real time from the start to the stop, or until now. */
  uint32_t sessions;        /* Threads that the profile has sampled so far. */
  uint32_t replaced;        /* 1: the program replaced the signal's handler, so
			** samples may be missing. */
  uint64_t lost_queue;      /* Samples lost: all buffers waited for the writer. */
  uint32_t unsampled;       /* Threads without samples: memory, timers or descriptors
			** ran out, the thread blocked the signal, or its C stack has no
			** room for one. The largest number at one time. */
  uint64_t signal_mean_ns;  /* Time of interrupt and signal per sample, as measured at
			   ** the start. 0: the clocks are on the kernel's tick, which
			   ** comes anyway. */
  uint64_t uncopied;        /* Pages that the handler read in place, because the kernel
			** refuses to copy them. Another thread may unmap them. */
  char signal[64];          /* Signals of the clocks, a list, such as SIGPROF. */
  uint32_t shared;          /* 1: the program has a handler for one of these. */
  char limit[192];          /* Why events take fewer samples than asked, or what they lack:
			   ** sentences, as far as there is room, ". " between them. Empty
			   ** if no limit is known. */
};

/* -- Callbacks -------------------------------------------------------------- */

/* Takes len bytes of the stream at *data. Returns the number of bytes taken, or 0 on
** error. A number above len counts as len, but (size_t)-1 is an error.
** luaM_sysprof_start makes the first call, and fails if that call fails.
** luaM_sysprof_stop makes the last call.
**
** With FLUSH_HANDLER it runs in the signal handler, so it must be async-signal-safe, see
** signal-safety(7). It may set *data to another buffer of the same size, which is filled
** next.
** With FLUSH_VM and FLUSH_THREAD it runs outside of the handler. For each sampled thread it
** runs on one thread at a time. It must not use the API or set *data to another buffer.
**
** Setting *data to NULL ends the stream. Later samples count as lost.
*/
typedef size_t (*luam_Sysprof_writer)(const void **data, size_t len, void *ctx);

/* Runs once when the profile stops, also by lua_close or exit, outside of the handler.
** Runs once more in a child of fork that ends the inherited profile; the profiler writes
** nothing there. buf is the current stream buffer or NULL. Returns 0 on success.
*/
typedef int (*luam_Sysprof_on_stop)(void *ctx, uint8_t *buf);

/* Walks the host stack, innermost frame first. Calls frame_writer with frame_no = 1, 2, ..
** and each frame's code address, until frame_writer returns NULL. Runs in the signal
** handler. The profiler drops the handler's own frames, up to the interrupted address.
*/
typedef void (*luam_Sysprof_backtracer)(void *(*frame_writer)(int frame_no, void *addr));

/* -- Functions -------------------------------------------------------------- */

/* The setters hold for every later start in this process. They do not change a running
** profile. They return PROFILE_SUCCESS, or PROFILE_ERRUSE if the callback must not be NULL.
** The modes LEAF and CALLGRAPH need a writer and an on_stop before luaM_sysprof_start.
*/
LUAMISC_API int luaM_sysprof_set_writer(luam_Sysprof_writer writer);
LUAMISC_API int luaM_sysprof_set_on_stop(luam_Sysprof_on_stop on_stop);
/* NULL selects the built-in backtracer, which is the default. */
LUAMISC_API int luaM_sysprof_set_backtracer(luam_Sysprof_backtracer backtracer);

/* Starts profiling the VM of L on the calling thread. Copies *opt. luaM_sysprof_error
** returns the reason of a failure.
** PROFILE_ERRUSE: a mode or clock is unknown, the interval is 0 or too large, or the
** signal is not allowed. In the modes LEAF and CALLGRAPH also: no buffer, writer or on_stop.
** PROFILE_ERRRUN: the VM is profiled already, jit.profile runs, or the process has no
** clock left.
** PROFILE_ERRMEM, PROFILE_ERRIO: errno has the cause, for example that the system forbids
** a clock.
*/
LUAMISC_API int luaM_sysprof_start(lua_State *L, const struct luam_Sysprof_Options *opt);

/* Starts profiling the VM of L into the file path. Copies *opt and path. If opt is NULL,
** takes both stacks every 10 ms.
** The profiler owns file, buffer and writer. It ignores buf, len, ctx, session and on_fork
** of *opt, and the setters for writer and on_stop. flush 0 means LUAM_SYSPROF_FLUSH_VM.
** luaM_sysprof_stop, lua_close or exit complete and close the file. The profiler
** overwrites an empty file or a profile, and no other file. Only the owner can read or
** write a new file. A failed start leaves no new file.
** Fails as luaM_sysprof_start does. PROFILE_ERRUSE: also no path, or the mode DEFAULT.
** PROFILE_ERRIO: also if opening or writing the file fails. errno has the cause then, and
** luaM_sysprof_error begins with the path.
*/
LUAMISC_API int luaM_sysprof_start_path(lua_State *L,
					const struct luam_Sysprof_Options *opt,
					const char *path);

/* Reason why the calling thread's last call of a function that returns a PROFILE_* status failed:
** one sentence, with a remedy where one exists. Empty if it succeeded, never NULL. Valid until the
** thread's next such call. The profiler owns the string.
*/
LUAMISC_API const char *luaM_sysprof_error(void);

/* Stops profiling the VM of L, completes the stream and calls on_stop.
** PROFILE_ERRRUN: the VM is not profiled. PROFILE_ERRIO: the writer or on_stop failed.
** The profile has stopped all the same, and the stream may be incomplete.
*/
LUAMISC_API int luaM_sysprof_stop(lua_State *L);

/* Writes all samples so far, with names: a reader can read the stream up to here. The profile
** goes on. PROFILE_ERRRUN: the VM is not profiled. PROFILE_ERRIO: the writer failed; errno has
** the cause.
*/
LUAMISC_API int luaM_sysprof_dump(lua_State *L);

/* Tells the profiler that the calling thread runs the VM of L from now on, instead of
** another thread. With THREADS_OWN the profiler samples the calling thread from now on.
** PROFILE_ERRRUN: the VM is not profiled. PROFILE_ERRIO: the profile's clocks do not start
** on this thread; errno has the cause. The profile goes on without samples.
** PROFILE_ERRMEM: with THREADS_OWN, this thread's C stack has no room for a signal. The profile
** goes on as without the call.
*/
LUAMISC_API int luaM_sysprof_moved(lua_State *L);

/* Copies the counters of the last profile that was started in this process. The profile
** may run or have stopped. Before the first start all counters are zero.
*/
LUAMISC_API int luaM_sysprof_report(struct luam_Sysprof_Counters *counters);

/* Fills in *r with the self-report of the VM's profile. If L is NULL, takes the last
** profile that was started in this process. The profile may run or have stopped. Before
** the first start all fields are zero. size is sizeof(*r): the library clears fields that
** it does not know. Any thread may call it. PROFILE_ERRUSE: r is NULL.
*/
LUAMISC_API int luaM_sysprof_selfreport(lua_State *L, struct luam_Sysprof_SelfReport *r,
					size_t size);

/* -- Live control ------------------------------------------------------------ */

/* Lets `luajit-sysprof record` and the other commands for programs that run reach the VM of L,
** which the calling thread runs. The first call of a process opens its socket, which children of
** fork() get, too. Costs a thread that sleeps. Ends with lua_close.
** PROFILE_ERRUSE: L is NULL. PROFILE_ERRIO: luaM_sysprof_error has the reason.
*/
LUAMISC_API int luaM_sysprof_live(lua_State *L);

/* -- Coroutines -------------------------------------------------------------- */

/* Dumps where all coroutines of the VM of L stand, grouped by stack and state. format: "text",
** "json" or "folded"; NULL selects "text". *text is a new string of *len bytes, with a NUL after
** it. The caller frees it by free(). The VM pauses meanwhile. Needs no profile.
** States are running, normal (has resumed another one), suspended (has yielded), not started (its
** frame is the function's definition), dead with error (with the message of one of the group) and
** dead (has returned, or has no code). A frame keeps its current line; where an error ended a Lua
** function, only the message tells the line.
** JSON is one object: pid, coroutines, states (number by state), groups. A group has count, state,
** frames; error if there is a message; waits if known: min_us, max_us, and the number at_least of
** coroutines that have waited for longer. A frame has kind (lua, builtin, c) and name; a Lua
** function also source, line if known, and path if the program keeps it under another name. The
** kind cut has the number of frames left out.
** PROFILE_ERRUSE: the format is unknown, or an argument is NULL. PROFILE_ERRMEM: no memory.
** luaM_sysprof_error has the reason.
*/
LUAMISC_API int luaM_sysprof_coroutines(lua_State *L, const char *format, char **text,
					size_t *len);

/* -- Labels ------------------------------------------------------------------ */

/* A label: texts that end with NUL. */
struct luam_Sysprof_Label {
  const char *key, *value;
};

/* Holds a set of n labels for L's VM; *set is its handle, 0 for n = 0. Equal sets have the same
** handle. Texts become valid UTF-8 without control characters, keys of at most 48 bytes, values
** of 192. A VM has 4,096 sets at a time; further ones are the set [other]. The caller releases
** the handle once for each call. Needs no profile.
** PROFILE_ERRUSE: more than 16 labels, an empty key, or NULL. PROFILE_ERRMEM: no memory.
*/
LUAMISC_API int luaM_sysprof_labelset(lua_State *L, const struct luam_Sysprof_Label *labels,
				      size_t n, uint32_t *set);

/* Gives the coroutine L a set of labels, which it holds until it gets another one or ends; 0: no
** labels. If previous is not NULL, *previous is the handle of its former set, or 0; the caller
** releases it. PROFILE_ERRUSE: the VM has no such set now.
*/
LUAMISC_API int luaM_sysprof_label(lua_State *L, uint32_t set, uint32_t *previous);

/* Releases the caller's handle of a set. PROFILE_ERRUSE: the VM has no such set now, or all its
** handles were released.
*/
LUAMISC_API int luaM_sysprof_labelset_release(lua_State *L, uint32_t set);

/* For FFI calls: gives the running coroutine the set of an object of misc.sysprof.labelset. Other
** addresses than its own are not allowed, but NULL, which does nothing.
*/
LUAMISC_API void luaM_sysprof_uselabels(const void *labelset);

/* -- Memory ----------------------------------------------------------------- */

/* Types of allocations, the indices of luam_Memprof_Count.type. */
#define LUAM_MEMPROF_STRING     1
#define LUAM_MEMPROF_TABLE      2
#define LUAM_MEMPROF_TABLE_PART 3 /* Array or hash part of a table. */
#define LUAM_MEMPROF_FUNCTION   4
#define LUAM_MEMPROF_UPVALUE    5
#define LUAM_MEMPROF_THREAD     6 /* Coroutine, or its Lua stack. */
#define LUAM_MEMPROF_CDATA      7
#define LUAM_MEMPROF_USERDATA   8
#define LUAM_MEMPROF_BUFFER     9
#define LUAM_MEMPROF_PROTOTYPE  10
#define LUAM_MEMPROF_TRACE      11
#define LUAM_MEMPROF_VM         12 /* Tables of the VM itself, and of its parser. */
#define LUAM_MEMPROF_OTHER      13 /* C code called the VM's allocator. */
#define LUAM_MEMPROF__MAX       14

struct luam_Memprof_Amount {
  uint64_t allocs; /* Blocks. A block that is resized counts as a new one. */
  uint64_t bytes;
};

/* Allocations of all counted calls. LuaJIT's own total, lua_gc(L, LUA_GCCOUNT), has grown
** by all.bytes + compiler.bytes - type[LUAM_MEMPROF_OTHER].bytes - freed bytes, if no C code
** has freed blocks of the type OTHER.
*/
struct luam_Memprof_Count {
  struct luam_Memprof_Amount all;      /* Sum of the types. */
  struct luam_Memprof_Amount compiler; /* What the compiler allocated for itself. */
  uint64_t freed;                      /* Bytes freed, also of blocks from before. */
  struct luam_Memprof_Amount type[LUAM_MEMPROF__MAX];
};

/* Starts a profile of the VM's allocations into the file path, as luaM_sysprof_start_path
** does with both stacks and the event `alloc`. opt->period is the mean distance of samples in
** bytes; 0 selects 512 KiB. Ignores mode, clock and interval. opt may be NULL.
** PROFILE_ERRUSE: also if opt->clocks is not NULL. luaM_sysprof_error has the reason.
*/
LUAMISC_API int luaM_memprof_start(lua_State *L, const struct luam_Sysprof_Options *opt,
				   const char *path);

/* Stops the VM's profile, as luaM_sysprof_stop does, if it has the event `alloc`.
** PROFILE_ERRRUN: no such profile runs.
*/
LUAMISC_API int luaM_memprof_stop(lua_State *L);

/* Counts the allocations of the function on the top of the stack: calls it warmup times, and
** then runs times with the collector stopped. Pops the function if it succeeds. Raises the
** function's error. A profile may run meanwhile. size is sizeof(*count): the library clears
** fields that it does not know.
** PROFILE_ERRUSE: an argument is NULL, no function, or runs is 0. PROFILE_ERRRUN: the VM
** counts already, or the function has replaced the VM's allocator. PROFILE_ERRMEM: no memory.
** luaM_sysprof_error has the reason.
*/
LUAMISC_API int luaM_memprof_count(lua_State *L, uint32_t runs, uint32_t warmup,
				   struct luam_Memprof_Count *count, size_t size);

/* Flags of luaM_memprof_snapshot. */
#define LUAM_MEMPROF_NO_STRINGS 1 /* Leave out the texts of strings. */
#define LUAM_MEMPROF_NO_WAIT    2 /* Return at once. The file appears when it is whole. */

/* Writes all objects of the VM of L into a new file, or into that of an older snapshot. Returns when
** a copy of the process has written it. VM thread, not in a finalizer or hook. flags: a sum of
** LUAM_MEMPROF_*.
** Returns PROFILE_SUCCESS. PROFILE_ERRUSE: L or path is NULL. PROFILE_ERRRUN: another snapshot of
** the process is being written. luaM_sysprof_error has the reason.
*/
LUAMISC_API int luaM_memprof_snapshot(lua_State *L, const char *path, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
