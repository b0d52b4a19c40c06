/*
** Stream format, version 4: the one specification of the bytes of a profile.
** Context: any thread (constants only).
**
** The reader mirrors these names in tools/sysprof/base/grammar.lua; a test compares
** the two. doc/format.md tells how to read a stream, with an example byte by byte.
*/

#ifndef _LJ_SYSPROF_FORMAT_H
#define _LJ_SYSPROF_FORMAT_H

/*
** stream     := prologue (prologue | chunk)*
** prologue   := symtab profile
** symtab     := 'l' 'j' 's' SPF_SYMTAB_VERSION zero zero zero SPF_SYMTAB_END
** profile    := 'l' 'j' 'p' SPF_VERSION zero zero zero
** chunk      := magic seq paylen crc record*
** magic      := 'l' 'j' 'c' SPF_VERSION
** seq        := <U32>   number of the chunk in its session, from 0
** paylen     := <U32>   bytes of the records that follow, below SPF_CHUNK_MAX
** crc        := <U32>   CRC-32 (IEEE 802.3) of the records, then seq and paylen
**
** record     := sample | stack | labels | definition
**
** Several sessions of a process may write into one file, chunk by chunk. Each VM
** is a session, and so is each thread of a program that is sampled as a whole.
** The first record of every chunk is an SPF_CONTEXT with the session's number,
** which no other session of the file has. Each session has its own numbers of
** chunks, definitions, ids, events, counters and end.
**
** definition := tag length payload      tag < SPF_LABELLED; unknown tags are skipped
** length     := <ULEB128>               bytes of the payload
** A payload may be longer than its known fields; the rest is ignored.
**
** stack      := stack-tag [more] base keep frame*
**                          root first: the outermost keep frames of the stack
**                          base, then these frames
** stack-tag  := <BYTE> [01LLLLLL]
**   LLLLLL : bytes of base, keep and the frames, at most 63
** more       := <ULEB128>  further bytes beyond 63; only if LLLLLL is 63
** base       := ref
** keep       := <ULEB128>  0 if base is 0
**
** ref        := <ULEB128>  a stack that this chunk has defined: 0 is the empty
**                          stack, 1 the last one, 2 the one before that; n + 2
**                          is the n-th of the chunk
**
** labels     := <BYTE> [001LLLLL] [more]
**                          from here on, samples of this chunk have these labels
**   LLLLL : id of an SPF_LABELS; 0 is no label, as at the beginning of a chunk
** more       := <ULEB128>  rest of the id beyond 31; only if LLLLL is 31
**
** sample     := sample-tag [index] time [weight] field* lua host
** sample-tag := <BYTE> [1WEESSSS]
**   SSSS : state of the VM, SPF_VMST_*
**   EE   : index of the event that caused the sample, see SPF_EVENT. 3 means that
**          index follows
**   W    : 1 if weight is absent, which means 0
** index      := <ULEB128>  of the event, less 3
** time       := signed     microseconds of CLOCK_MONOTONIC since the last sample,
**                          or since a later SPF_CONTEXT; less the step of the
**                          latest SPF_CONTEXT
** weight     := signed     what the sample stands for, in the event's unit: mostly
**                          the growth since the event's last sample. In
**                          SPF_UNIT_US, and without a period, less the microseconds
**                          since that sample or a later SPF_CONTEXT. Else less the
**                          period
** field      := <ULEB128>  one for each field of the event, in that order
** lua        := ref        Lua side of the stack
** host       := ref        host side of the stack
**
** signed     := <ULEB128>  D * 2, or -D * 2 - 1 if D is negative
**
** Payloads:
**
** SPF_META     := key value                   two strings about the profile, see below
** SPF_CONTEXT  := tid time session step before since
**                 thread of the samples that follow.
**                 time: microseconds of CLOCK_MONOTONIC since the start, which
**                 all sessions of the file share.
**                 session: its number in the file.
**                 step: subtracted from the times of samples.
**                 before: stacks of the session's last chunks that this chunk
**                 may refer to.
**                 since: 1 if the session's chunks before are not needed. Then this
**                 chunk has each SPF_META, SPF_EVENT, SPF_THREAD and SPF_MODULE that
**                 holds, and before is 0. So a file of fixed size may begin here.
**                 The last four are 0 if absent.
** SPF_EVENT    := index name unit period (kind name)*
**                 cause of the samples with this index.
**                 name: a string, the clock or event in use.
**                 unit: SPF_UNIT_*.
**                 period: requested weight of one sample, in nanoseconds for
**                 SPF_UNIT_US, else in the unit. 0: there is none.
**                 kind name: a field of its samples. kind: SPF_FIELD_*; name: a
**                 string.
**                 Without any SPF_EVENT, the META clock causes all samples, in
**                 SPF_UNIT_US.
** SPF_THREAD   := tid name                    name of a thread
** SPF_MODULE   := start end bias buildid path mapped ELF object. Its address A is
**                 A - bias in the file. start, end, bias: <ULEB128>.
**                 buildid, path: strings. It replaces the modules that it
**                 overlaps, for all stacks and SPF_HSYM after it. A path in
**                 brackets is no file: [vdso], or [anonymous] where an object
**                 was unloaded.
** SPF_LFUNC    := fid firstline lastline chunk name [path]
**                 Lua function. chunk: as in lua_Debug.source, @ and a file name,
**                 = and a name, or source text.
**                 name: empty if it is not known yet; a later SPF_LFUNC of the
**                 same fid replaces this one.
**                 firstline 0 is a main chunk, unless lastline is 0 and a name
**                 stands there. Then the function is bytecode without debug
**                 information: its lines are unknown, and so is the name ?.
**                 path: where the program keeps a function whose definition has
**                 another name.
** SPF_BODY     := (fid hash)*                 hash: <U64>, of what the bytecode of the function
**                 does. It covers no lines, and no names but those of variables of enclosing
**                 functions. Equal hashes on one base: equal functions; without debug
**                 information, they may use other variables of enclosing functions
** SPF_FFUNC    := ffid name                   builtin function
** SPF_HSYM     := symaddr name diff*          the symbol name starts at symaddr. It
**                 contains these addresses of stacks: the first is symaddr +
**                 diff, each next one is the last one + diff. Empty name: a
**                 function begins at symaddr, and its name is unknown. name@plt
**                 is a stub that jumps to name. A symbol may have several records.
** SPF_CFUNC    := address number name         Lua's name of a C function: of its closure
**                 with this number. number 0: of its closures without a name.
**                 The address belongs to the modules present now. a|b is one of
**                 several names.
** SPF_COUNTERS := (counter-id value)*         totals since the start of the
**                 profile. The latest value of an id counts; a missing one is 0.
**                 SPF_COUNTER_*, or SPF_COUNTER_EVENT and more for an event.
**                 SPF_COUNTER_REFUSED stands before SPF_END only.
** SPF_END      :=                             the profiler stopped in order
** SPF_TEXT     := id text                     a string that fields refer to
** SPF_LABELS   := id (key value)*             a set of labels: strings. ids from 1
** SPF_MARK     := time kind number*           a moment without weight: microseconds of
**                 CLOCK_MONOTONIC since the start, SPF_MARK_*, its arguments
** SPF_ENDED    := index how (thing age)*      things that samples of this event began
**                 have ended. how: SPF_ENDED_*. age: cycles of the garbage collector
**                 since the sample
**
** No writer writes these yet. Readers skip them.
**
** SPF_SPAN     := span parent time name labels (key value)*
**                 a span begins. span: its number, from 1. parent: the span around it;
**                 0: none. time: signed, microseconds as in SPF_MARK. name: id of an
**                 SPF_TEXT. labels: id of an SPF_LABELS, or 0. key value: strings
** SPF_SPAN_END := span how time suspended     how: SPF_SPAN_*. suspended:
**                 microseconds in which its coroutine did not run
** SPF_IN_SPAN  := span                        from here on, samples of this chunk are in the
**                 span; 0: in none, as at the beginning of a chunk
** SPF_TRACE    := trace parent exit fid line link ins bytes
**                 the number of a trace means this one from here on. parent, exit: the
**                 exit that it continues; 0: it is a root. fid, line: where it begins.
**                 link: the trace that it ends in; 0: the interpreter. ins, bytes: its
**                 length before and after its compilation
** SPF_LOST     := index counter-id tid from to count weight
**                 what samples of an event lack, from a time to another, as in SPF_MARK.
**                 counter-id: why
** SPF_SOURCE   := chunk size offset text      text of a source, in parts. size: of all
**
** frame      := <ULEB128>  payload * 16 + kind (64 bits), SPF_FRAME_*, then by kind:
**   SPF_FRAME_LFUNC     fid            then line <ULEB128>, 0 if unknown
**   SPF_FRAME_FFUNC     ffid
**   SPF_FRAME_CFUNC     address of a C function called from Lua
**                                      whose closure has no number
**   SPF_FRAME_CLOSURE   the same, then the number of its closure <ULEB128>, from 1
**   SPF_FRAME_CBOUND    0              Lua side only: C called the frames after it
**                                      (leafward); stands for one VM frame
**   SPF_FRAME_RESUME    0              Lua side only: the frames before it resumed
**                                      a coroutine, which runs the frames after
**                                      it; stands for one VM frame
**   SPF_FRAME_HOST      code address: the interrupted instruction, else the return
**                                      address minus 1, which lies in the call
**   SPF_FRAME_NEAR      the same as a signed difference to the address of the
**                                      nearest host frame rootward
**   SPF_FRAME_LSAME     the function of the nearest LFUNC frame rootward, at its
**                                      line plus this signed difference
**   SPF_FRAME_VM        0              host side only: a C frame of the VM. One run
**                                      of Lua frames belongs here
**   SPF_FRAME_CUT       number of frames left out here, then the number of
**                                      CBOUND and RESUME (Lua side) or VM (host
**                                      side) among them <ULEB128>
**   SPF_FRAME_BROKEN    SPF_BROKEN_*: frames are unknown here, and why
**   SPF_FRAME_TRACE     number of a trace * 2, + 1 within its loop, then how many
**                                      of the next frames (rootward) are its
**                                      compiled code <ULEB128>; Lua side only
**   SPF_FRAME_WORK      SPF_WORK_*: work of the VM for the frames before it
**                                      (rootward), or what the thread waits for;
**                                      then its argument <ULEB128>; Lua side only,
**                                      at the leaf. From SPF_WORK_WAIT on it is
**                                      leafward of the host side, too
**   SPF_FRAME_REPEAT    how often the nearest frames rootward follow once more, then
**                                      how many frames these are <ULEB128>: 1 to
**                                      SPF_REPEAT_FRAMES, without a REPEAT among
**                                      them. keep counts it as one frame
**
** A TRACE stands leafward of the frames that it covers, never across CBOUND, RESUME,
** CUT or BROKEN. A WORK is leafward of a TRACE. A wait, a WORK from SPF_WORK_WAIT on, may
** follow another WORK. In the mode leaf each side has only its innermost frame, besides
** TRACE and WORK, and a BROKEN of the host side. If that of the Lua side is a CFUNC, the innermost LFUNC follows it.
**
** Joining: the reader walks both sides from the leaf to the root, and takes over host
** frames as they are. Each SPF_FRAME_VM on the host side stands for a run: the Lua frames
** up to the next CBOUND or RESUME. It consumes that one.
**   RESUME              like CBOUND; shown as [coroutine]
**   CFUNC, CLOSURE      leaf of its run, and the next host frame. If that frame's symaddr is
**                       the address, it stands once; but with an SPF_CFUNC, both stand
**   TRACE               no frame of the stack
**   WORK                place: see below. A wait is the leaf of the joined stack: take it
**                       before the walk
**   CUT, Lua side       with b boundaries: its run ends in it, if b is not 0. The next b - 1
**                       VM frames have no Lua frame; the next one takes the frames before
**   CUT, host side      with v VM frames: the next v runs stand here, leafward of the marker
**   BROKEN, Lua side    a cut with as many boundaries as the frames before it leave over; as
**                       first frame, it takes no VM frame
**   BROKEN, host side   the walk goes on behind it
**   Lua frames left     stand at the root, above a marker with the reason; in the mode leaf
**                       without marker
**   VM frames left      are dropped
**   NOT_VM              SPF_BROKEN_NOT_VM on the Lua side, and no VM frame is left: nothing
**                       is missing, the thread is outside of the VM
** The VM does work in lj_gc_step and lj_gc_fullgc (SPF_WORK_GC), and trace_state
** (SPF_WORK_RECORD, OPT, ASM). A WORK stands just leafward of the innermost one of these,
** among the host frames up to the next Lua frame. A side exit stands just leafward of the
** Lua frame, since it begins in compiled code. Without these names, a WORK is the leaf of
** its run, or leafward of the host frame of a CFUNC. Without VM or Lua frame, it is the
** leaf of the host side.
**
** Keys of SPF_META; what there is nothing to tell about is absent:
**   clock               clocks and events asked for, separated by commas
**   wall                parts of the sum wall, separated by commas
**   interval_ns         nanoseconds between two samples of a clock, as asked
**   signal              signals of the clocks, separated by commas;
**                       " (shared with a handler of the program)" may follow
**   limit               why events do not keep to their periods, or what they lack:
**                       sentences, ". " between them; may come again at the end
**   backtracer          libunwind; absent for the profiler's own
**   mode, pid           default, leaf or callgraph; process id
**   start_time, base    Unix time of the start in seconds; version of LuaJIT
**   command             command line, a space between arguments. At most 256 bytes of an
**                       argument and 4096 of all; what is cut ends with ...
**   host                name of the machine
** At the end:
**   main_locals         unknown: live lacks what only locals of the main chunk held
**   size_limit          bytes of the file at which the profile ended
**   throttled           how often the CPU quota of the control group stopped it, and
**   throttled_ns        for how long: differences in its cpu.stat
**   forked              calls of fork(), with those that failed: children without profiles
**   child_profiles      the same: children with profiles of their own
**
** Things: a thing, such as an allocated block, that is left at the end of its session is
** in an event. Its name is that of the field SPF_FIELD_THING. The writer keeps a thing of
** size s with the probability p = 1 - e^(-s/period), or 1 for a period up to 1. So it
** stands for s/p in the event's unit, and for 1/p things. The period is
** SPF_EVENT_LEFT_PERIOD, else the event's own. If the weight of its sample exceeds s/p by
** more than 1, or it has no size, the thing has the weights of its sample. lua_close frees
** all that a VM holds: if another VM of the file goes on, its things are SPF_ENDED_GONE.
** SPF_EVENT_CYCLES less SPF_FIELD_CYCLE is the age of a thing. Without samples, three
** times the longest period bound what is left.
**
** A profile whose last SPF_MARK_DUMP no sample follows is whole without an SPF_END.
** Neither times nor weights add up to less than 0; the weights of a clock add up to its
** total. If SPF_EVENT_MISSED_US is all of SPF_COUNTER_WALL_US, the event never began, and
** its total of 0 says nothing. Profiles that run at a time have equal parts of
** SPF_COUNTER_THREAD_NS.
**
** String := <ULEB128> length, then the bytes. <U32> and <U64> are little-endian.
**
** A definition is valid from its place on. Each chunk defines again the functions,
** texts, labels and stacks that its samples refer to, except the stacks that before
** counts. Functions, texts and labels keep their ids; the numbers of stacks change from
** chunk to chunk. A thing has its number in all chunks, until it ends or a later sample
** has the same number. So a reader remembers no more things than the writer does.
**
** Version 3 has the same records, without labels, index, field, since, SPF_TEXT,
** SPF_LABELS, SPF_MARK, SPF_ENDED and SPF_FRAME_REPEAT. There, each weight is less the
** microseconds, whatever its unit, and EE 3 is the index.
** SPF_META, SPF_EVENT, SPF_THREAD and SPF_MODULE stand in the first chunk, and
** where they change. SPF_HSYM and SPF_FFUNC stand before SPF_END.
*/

#define SPF_SYMTAB_VERSION 3
#define SPF_SYMTAB_END     0x80
#define SPF_VERSION        4
#define SPF_VERSION_OLDEST 3                  /* That the reader reads. */
#define SPF_PROLOGUE_SIZE  15                 /* symtab and the prologue of profile. */
#define SPF_CHUNK_HEADER   16                 /* magic, seq, paylen, crc. */
#define SPF_CHUNK_MAX      (16 * 1024 * 1024) /* Bytes of a whole chunk. */

/* Tags of records. */
#define SPF_META                0x01
#define SPF_CONTEXT             0x02
#define SPF_MODULE              0x03
#define SPF_LFUNC               0x04
#define SPF_FFUNC               0x05
#define SPF_HSYM                0x06
#define SPF_COUNTERS            0x08
#define SPF_END                 0x09
#define SPF_EVENT               0x0a
#define SPF_THREAD              0x0b
#define SPF_TEXT                0x0c
#define SPF_LABELS              0x0d
#define SPF_MARK                0x0e
#define SPF_ENDED               0x0f
#define SPF_CFUNC               0x10
#define SPF_BODY                0x11
#define SPF_SPAN                0x12
#define SPF_SPAN_END            0x13
#define SPF_IN_SPAN             0x14
#define SPF_TRACE               0x15
#define SPF_LOST                0x16
#define SPF_SOURCE              0x17
#define SPF_LABELLED            0x20
#define SPF_LABELLED_ID         0x1f
#define SPF_STACK               0x40
#define SPF_STACK_LENGTH        0x3f
#define SPF_SAMPLE              0x80
#define SPF_SAMPLE_WEIGHT_USUAL 0x40
#define SPF_SAMPLE_EVENT        0x30
#define SPF_SAMPLE_STATE        0x0f

/* Most events of a session at a time, and the units of their weights. */
#define SPF_EVENTS_MAX 16

/* Time from one tick of a clock to the next, in times that a tick takes, at least. */
#define SPF_TICK_CYCLES  3
#define SPF_EVENT_IN_TAG 3 /* Indices below are in the tag of a sample. */
#define SPF_UNIT_US      0 /* Microseconds of the thread's CPU time. */
#define SPF_UNIT_COUNT   1 /* Occurrences. */
#define SPF_UNIT_BYTES   2 /* Bytes of memory. */
#define SPF_UNIT_NS      3 /* Nanoseconds of real time. */

/* Fields of samples. Readers pass over those that they do not know. No writer writes
** FUNC and LINE yet.
*/
#define SPF_FIELD_COUNT  0 /* A second weight: occurrences. */
#define SPF_FIELD_THING  1 /* Number of a thing that began here and may end; 0: none. */
#define SPF_FIELD_TEXT   2 /* Id of an SPF_TEXT; 0: none. */
#define SPF_FIELD_NUMBER 3 /* A fact. */
#define SPF_FIELD_SIZE   4 /* Size of the thing, in the event's unit. */
#define SPF_FIELD_CYCLE  5 /* Cycles of the garbage collector that ended before it. */
#define SPF_FIELD_FUNC   6 /* Id of an SPF_LFUNC: where the event happened, */
#define SPF_FIELD_LINE   7 /* and its line. */
#define SPF_FIELD_TRACE  8 /* Number of a trace. */
#define SPF_FIELD__MAX   9
#define SPF_FIELDS_MAX   8 /* Of an event. */

/* Marks, and how things end. */
#define SPF_MARK_DUMP     0 /* A dump of the profile: no argument. */
#define SPF_MARK_LABELS   1 /* A set of labels is given up: its id. */
#define SPF_ENDED_GONE    0 /* The thing does not exist any more. */
#define SPF_ENDED_DROPPED 1 /* The writer forgot it; what follows is unknown. */

/* How spans end. */
#define SPF_SPAN_STOPPED 0
#define SPF_SPAN_ERROR   1 /* By an error. */
#define SPF_SPAN_GONE    2 /* Its coroutine does not exist any more. */

/* Kinds of frames. */
#define SPF_FRAME_LFUNC   0
#define SPF_FRAME_FFUNC   1
#define SPF_FRAME_CFUNC   2
#define SPF_FRAME_CBOUND  3
#define SPF_FRAME_RESUME  4
#define SPF_FRAME_HOST    5
#define SPF_FRAME_VM      6
#define SPF_FRAME_CUT     7
#define SPF_FRAME_BROKEN  8
#define SPF_FRAME_TRACE   9
#define SPF_FRAME_WORK    10
#define SPF_FRAME_NEAR    11
#define SPF_FRAME_LSAME   12
#define SPF_FRAME_REPEAT  13
#define SPF_FRAME_CLOSURE 14

#define SPF_REPEAT_FRAMES 32 /* Most frames that repeat together. */

/* Work of the VM, or what a thread waits for, and its argument. */
#define SPF_WORK_GC       0  /* Collects garbage: SPF_GC_*. */
#define SPF_WORK_RECORD   1  /* Records a trace: 0. */
#define SPF_WORK_OPT      2  /* Optimises a trace: 0. */
#define SPF_WORK_ASM      3  /* Generates machine code of a trace: 0. */
#define SPF_WORK_EXIT     4  /* Leaves a trace: number * 65536 + exit. */
#define SPF_WORK_PROFILER 5  /* Takes a sample, which this one has interrupted: 0. */
#define SPF_WORK_WAIT     6  /* Waits in a system call: its number + 1; 0: it is unknown. */
#define SPF_WORK_FAULT    7  /* Waits for a page of memory: 0. */
#define SPF_WORK_READY    8  /* Could run, and waits for a processor: 0. */
#define SPF_WORK_SHORT    9  /* Waits that were too short for a stack: 0. */
#define SPF_WORK_UNSEEN   10 /* A stack is unknown: SPF_UNSEEN_*. */
#define SPF_WORK_BUSY     11 /* A coroutine waits while its thread runs other code: 0. */
#define SPF_WORK_LOST     12 /* Without a processor; nobody knows whether it waited: 0. */
#define SPF_WORK_UNKEPT   13 /* What lost samples of the event stand for: 0. */
#define SPF_WORK_OTHERS   14 /* Threads that nobody sampled, or not to their end: 0. */

/* Why the stack is unknown of a wait, or of CPU time. */
#define SPF_UNSEEN_LATE    0 /* Nobody looked at the thread in time. */
#define SPF_UNSEEN_MOVED   1 /* The thread ran while its stack was read. */
#define SPF_UNSEEN_HIDDEN  2 /* The kernel does not tell where it waits. */
#define SPF_UNSEEN_NO_TICK 3 /* The thread ran, and no tick of its clock came. */
#define SPF_UNSEEN_MANY    4 /* Samples of so many waits would take too long. */

/* Phases of the garbage collector. */
#define SPF_GC_PAUSE       0
#define SPF_GC_PROPAGATE   1
#define SPF_GC_ATOMIC      2
#define SPF_GC_SWEEPSTRING 3
#define SPF_GC_SWEEP       4
#define SPF_GC_FINALIZE    5

/* States of the VM, in the order of the RFC's counters. */
#define SPF_VMST_INTERP 0
#define SPF_VMST_LFUNC  1
#define SPF_VMST_FFUNC  2
#define SPF_VMST_CFUNC  3
#define SPF_VMST_GC     4
#define SPF_VMST_EXIT   5
#define SPF_VMST_RECORD 6
#define SPF_VMST_OPT    7
#define SPF_VMST_ASM    8
#define SPF_VMST_TRACE  9
#define SPF_VMST__MAX   10

/* Why a stack is broken. */
#define SPF_BROKEN_NO_BASE    0 /* No frame base fits the machine state. */
#define SPF_BROKEN_CHAIN      1 /* A link or function slot is not valid. */
#define SPF_BROKEN_STACK_MOVE 2 /* The VM was moving the Lua stack. */
#define SPF_BROKEN_FAULT      3 /* A needed address is not readable. */
#define SPF_BROKEN_NO_CFI     4 /* Host code without unwind information. */
#define SPF_BROKEN_NOT_VM     5 /* The thread does not run this VM now. */
#define SPF_BROKEN_JOIN       6 /* The two sides do not fit together. */
#define SPF_BROKEN_TRACE      7 /* No position is known for compiled code. */
#define SPF_BROKEN__MAX       8

/* Check that refused a stack. A broken stack has one code; its group is SPF_BROKEN_*. If
** all candidates for the top frame fail, the code is that of the candidate that the walk
** followed the furthest; of equals, the first one.
*/
/* Lua side, SPF_BROKEN_NO_BASE. */
#define SPF_REFUSED_NO_THREAD 0 /* No coroutine of this VM is known to run. */
#define SPF_REFUSED_NO_STACK  1 /* The coroutine has no valid Lua stack. */
/* Lua side, SPF_BROKEN_CHAIN. */
#define SPF_REFUSED_FRAME_OUTSIDE      2  /* The frame is outside the Lua stack. */
#define SPF_REFUSED_FRAME_UNREADABLE   3  /* The frame is not readable. */
#define SPF_REFUSED_SLOT_NOT_FUNCTION  4  /* The function slot holds another type. */
#define SPF_REFUSED_SLOT_NOT_THREAD    5  /* The slot holds another coroutine. */
#define SPF_REFUSED_FUNC_INVALID       6  /* The slot points to no function object. */
#define SPF_REFUSED_PROTO_INVALID      7  /* The function has no valid prototype. */
#define SPF_REFUSED_CFUNC_INVALID      8  /* The C function has no header of this VM. */
#define SPF_REFUSED_NO_ID              9  /* The prototype got no id. */
#define SPF_REFUSED_INLINED_INVALID    10 /* A trace inlined no valid prototype. */
#define SPF_REFUSED_PC_UNREADABLE      11 /* No call is readable before the PC. */
#define SPF_REFUSED_CALLER_OUTSIDE     12 /* The caller's frame is outside the stack. */
#define SPF_REFUSED_CALLER_INVALID     13 /* The caller's slot holds no function. */
#define SPF_REFUSED_CALLER_NOT_LUA     14 /* The caller is not a Lua function. */
#define SPF_REFUSED_PC_NOT_IN_CALLER   15 /* The PC is outside the caller. */
#define SPF_REFUSED_LINK_ZERO          16 /* The link has no distance. */
#define SPF_REFUSED_LINK_OUTSIDE       17 /* The link leaves the Lua stack. */
#define SPF_REFUSED_CONT_OUTSIDE       18 /* A continuation is outside the stack. */
#define SPF_REFUSED_CONT_CALLER        19 /* No function is below a continuation. */
#define SPF_REFUSED_CONT_NOT_VM        20 /* A continuation is not code of the VM. */
#define SPF_REFUSED_CONT_PC            21 /* A continuation's PC is not its caller's. */
#define SPF_REFUSED_VARARG_DIFFERS     22 /* A vararg frame has two functions. */
#define SPF_REFUSED_PCALL_DIFFERS      23 /* A pcall frame is not below pcall. */
#define SPF_REFUSED_CALL_NO_CFRAME     24 /* A call from C has no VM frame. */
#define SPF_REFUSED_CALLBACK_NO_CFRAME 25 /* An FFI callback has no VM frame. */
#define SPF_REFUSED_ENTRY_NO_CFRAME    26 /* No VM frame is left to be entered. */
#define SPF_REFUSED_CFRAME_UNREADABLE  27 /* A VM frame is not readable. */
#define SPF_REFUSED_CFRAME_LEFT        28 /* A VM frame has no Lua frames. */
#define SPF_REFUSED_RESUMER_NO_STACK   29 /* The resumer has no valid Lua stack. */
#define SPF_REFUSED_THREADS_MAX        30 /* Too many coroutines resume each other. */
/* Lua side, SPF_BROKEN_NO_CFI. */
#define SPF_REFUSED_RESUMER_UNREADABLE 31 /* The last VM frame is not readable. */
#define SPF_REFUSED_RESUMER_UNLINKED   32 /* The resumer's VM frame is not linked. */
#define SPF_REFUSED_RESUMER_UNKNOWN    33 /* The host stack does not show the resumer. */
/* Lua side, SPF_BROKEN_TRACE. */
#define SPF_REFUSED_NO_POSITION 34 /* No position is known for the machine code. */
/* Lua side, SPF_BROKEN_STACK_MOVE. */
#define SPF_REFUSED_MOVE_NO_COPY 35 /* The new stack was not found. */
#define SPF_REFUSED_MOVE_INVALID 36 /* The new stack is not valid. */
#define SPF_REFUSED_MOVE_OTHER   37 /* Another check failed in a move. */
/* Lua side, SPF_BROKEN_NOT_VM. */
#define SPF_REFUSED_VM_CHANGES 38 /* Another thread changes the VM. */
#define SPF_REFUSED_VM_WAITED  39 /* The thread waits for the VM in C code. */
#define SPF_REFUSED_VM_OUTSIDE 40 /* The thread has no frame of the VM. */
/* SPF_BROKEN_JOIN. */
#define SPF_REFUSED_LUA_FEWER  41 /* Lua side: fewer boundaries than host side. */
#define SPF_REFUSED_HOST_FEWER 42 /* Host side: fewer boundaries than Lua side. */
/* Host side, SPF_BROKEN_NO_CFI. */
#define SPF_REFUSED_HOST_NO_CFRAME 43 /* Code of the VM has no VM frame. */
#define SPF_REFUSED_HOST_NO_OBJECT 44 /* The address is in no loaded object. */
#define SPF_REFUSED_HOST_NO_RULE   45 /* The object has no rule for the address. */
#define SPF_REFUSED_HOST_STEPS_MAX 46 /* The stack is too deep. */
/* Host side, SPF_BROKEN_FAULT. */
#define SPF_REFUSED_HOST_SAVED    47 /* A saved register is not readable. */
#define SPF_REFUSED_HOST_RETURN   48 /* A VM frame is not readable. */
#define SPF_REFUSED_HOST_PARTIAL  49 /* A VM frame under construction is not readable. */
#define SPF_REFUSED_HOST_UNLOADED 50 /* The object of the address was unloaded. */
#define SPF_REFUSED__MAX          51

/* Counters. Ids 0..9 count samples by SPF_VMST_*, the lost ones included. */
#define SPF_COUNTER_LOST_MARKS  14 /* Lost marks: no room in the buffer. */
#define SPF_COUNTER_UNCOPIED    15 /* Pages read in place, see lj_safeload.h. */
#define SPF_COUNTER_LOST_BUFFER 16 /* Lost: no room in the buffer. */
#define SPF_COUNTER_LOST_WRITER 17 /* Lost: the writer failed. */
#define SPF_COUNTER_LOST_NESTED \
  18 /* Lost: the session was held, or the tick had no room or place. */
#define SPF_COUNTER_OVERRUNS       19 /* Of older streams: sum of SPF_EVENT_OVERRUNS. */
#define SPF_COUNTER_HANDLER_NS     20 /* CPU time in the handler. */
#define SPF_COUNTER_HANDLER_MAX_NS 21 /* Time in the handler, maximum. */
#define SPF_COUNTER_THROTTLED      22 /* Of older streams: sum of SPF_EVENT_THROTTLED. */
#define SPF_COUNTER_HANDLER_P99_NS 23 /* Time in the handler, 99 % below. */
#define SPF_COUNTER_TOTAL          24 /* + index: of older streams, SPF_EVENT_TOTAL. */
#define SPF_COUNTER_WALL_US        28 /* Time since the start. */
#define SPF_COUNTER_LOST_QUEUE     29 /* Lost: all buffers wait. */
#define SPF_COUNTER_UNSAMPLED \
  30                               /* Threads that could not be sampled, at
						** most at a time. */
#define SPF_COUNTER_SIGNAL_NS   31 /* Of older streams: sum of SPF_EVENT_SIGNAL_NS. */
#define SPF_COUNTER_LUA_BROKEN  32 /* + SPF_BROKEN_*: Lua side broken. */
#define SPF_COUNTER_HOST_BROKEN 48 /* + SPF_BROKEN_*: host side broken. */
#define SPF_COUNTER_RESIDENT    56 /* Resident bytes of the process. */
#define SPF_COUNTER_MAPPED      57 /* Bytes that LuaJIT's allocator has mapped for all VMs. */
#define SPF_COUNTER_MCODE       58 /* Bytes for machine code of the VM. */
#define SPF_COUNTER_THREAD_NS   59 /* CPU time of the profiler's own thread. */
#define SPF_COUNTER_REFUSED     64 /* + SPF_REFUSED_*: stacks that a check refused. */
#define SPF_COUNTER__MAX        128

/* Counters of an event have the ids SPF_COUNTER_EVENT + index * SPF_COUNTER_EVENT_STEP +
** one of these.
*/
#define SPF_COUNTER_EVENT      128
#define SPF_COUNTER_EVENT_STEP 16
#define SPF_EVENT_TOTAL        0  /* All in its unit, sampled or not. */
#define SPF_EVENT_SAMPLES      1  /* Samples, the lost ones included. */
#define SPF_EVENT_LUA_BROKEN   2  /* Samples whose Lua side is broken. */
#define SPF_EVENT_HOST_BROKEN  3  /* Samples whose host side is broken. */
#define SPF_EVENT_OVERRUNS     4  /* Ticks merged in one signal. */
#define SPF_EVENT_THROTTLED    5  /* Ticks left out, see lj_throttle.h. */
#define SPF_EVENT_SIGNAL_NS    6  /* Interrupts and signals of the ticks, if measured. */
#define SPF_EVENT_LOST_ENDS    7  /* Ends and beginnings of things without room. */
#define SPF_EVENT_LEFT_PERIOD  8  /* Period by which things are left, at least. */
#define SPF_EVENT_HELD         9  /* What the VM holds, in the event's unit. */
#define SPF_EVENT_CYCLES       10 /* Cycles of the garbage collector that have ended. */
#define SPF_EVENT_CYCLE_US     11 /* Microseconds since the last one has ended. */
#define SPF_EVENT_CYCLE_HELD   12 /* SPF_EVENT_HELD at its end. */
#define SPF_EVENT_ENDED_CALLS  13 /* System calls that a tick ended with EINTR. */
#define SPF_EVENT_MISSED_US    14 /* Microseconds since the start in which it did not run. */
#define SPF_EVENT_LONGEST      15 /* Longest period, if it was not the asked one; else 0. */
#define SPF_EVENT__MAX         16

#endif
