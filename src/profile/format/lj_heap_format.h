/*
** Format of heap snapshots, version 1: the one specification of their bytes.
** Context: any thread (constants only).
**
** The reader mirrors these names in tools/sysprof/base/heapgrammar.lua; a test compares the two.
*/

#ifndef _LJ_HEAP_FORMAT_H
#define _LJ_HEAP_FORMAT_H

/*
** snapshot := 'l' 'j' 'h' HPF_VERSION flags pid time record* end zero* sum
** flags    := <BYTE>     HPF_NO_STRINGS: texts of strings and keys are left out
** pid      := <ULEB128>  of the program
** time     := <ULEB128>  of the snapshot, in seconds of Unix time
** zero*    :=            up to a multiple of 8 bytes
** sum      := <U64>      of all 64-bit words before, little-endian: from HPF_SUM on, for each
**                        word sum = (sum ^ word) * HPF_PRIME
**
** record   := root | part | object
** root     := HPF_ROOT kind index ref       a place where the collector begins.
**                                           kind: HPR_*, ref relative to address 0
** part     := HPF_PART kind bytes           memory that is no object. kind: HPP_*
** end      := HPF_END objects total state   objects: number of them in this file.
**                                           total: bytes that the VM counts.
**                                           state: bits HPS_*, 0: nothing is missing
**
** object   := tag address size body         tag: HPF_STR to HPF_UDATA
** address  := signed     eighths of the address, less those of the object before
** size     := <ULEB128>  bytes as the VM counts them
** ref      := <ULEB128>  0: no object; else 1 + signed: eighths of its address, less those of the
**                        object that refers to it. The object may be missing: an object that
**                        the collector is about to free may refer to one that it has freed
** signed   := <ULEB128>  D * 2, or -D * 2 - 1 if D is negative
** text     := length <BYTE>*
** list     := (gap ref)* 0                  gap: from one index to the next, at first from -1
** refs     := count ref*
** Other words are <ULEB128>.
**
** str      := flags length text             flags: HPO_FIXED; length: of the whole string
** upval    := flags ref                     flags: HPO_CLOSED
** thread   := flags status env frames slots
** frames   := count (func line base)*       from the top on; line 0: unknown; base: slot
** slots    := (gap ref name)* 0             name: text, empty: it is no local variable
** proto    := chunk first lines flags trace upvalues refs
** upvalues := count text*
** func     := ffid env proto refs           ffid 0: Lua; its refs are its upvalues
**           | ffid env code refs            others: in C. code: its address
** trace    := number proto refs             refs: constants and other traces
** cdata    := ctype                         number of the type
** tab      := flags metatable list keyed used
**                                           flags: HPO_WEAKKEY, HPO_WEAKVALUE
** keyed    := (key ref)* HPK_END            ref: the value
** key      := HPK_FALSE | HPK_TRUE | HPK_LIGHTUD <ULEB128> | HPK_NUM <U64: a double>
**           | HPK_INT signed | HPK_OBJ ref
** used     := <ULEB128>                     slots with a value, also those of values that are no
**                                           objects, which the list and keyed leave out
** udata    := kind metatable env refs
** env, proto, chunk, metatable, func are a ref.
*/

#define HPF_VERSION 1
#define HPF_SUM     0xcbf29ce484222325ull
#define HPF_PRIME   0x100000001b3ull

#define HPF_NO_STRINGS 1

/* Tags. */
#define HPF_STR    1
#define HPF_UPVAL  2
#define HPF_THREAD 3
#define HPF_PROTO  4
#define HPF_FUNC   5
#define HPF_TRACE  6
#define HPF_CDATA  7
#define HPF_TAB    8
#define HPF_UDATA  9
#define HPF_ROOT   10
#define HPF_PART   11
#define HPF_END    12

/* Flags of objects. */
#define HPO_FIXED     1 /* The VM itself keeps it. */
#define HPO_CLOSED    1 /* It has its value, not the stack. */
#define HPO_WEAKKEY   1
#define HPO_WEAKVALUE 2
#define HPO_MAIN      1 /* The main thread. */
#define HPO_RUNNING   2 /* The coroutine that runs. */

/* Kinds of keys. */
#define HPK_END     0
#define HPK_FALSE   1
#define HPK_TRUE    2
#define HPK_LIGHTUD 3
#define HPK_NUM     4
#define HPK_INT     5
#define HPK_OBJ     6

/* Kinds of roots. */
#define HPR_MAIN     1 /* The main thread. */
#define HPR_GLOBALS  2
#define HPR_REGISTRY 3
#define HPR_VM       4 /* Names of metamethods, default files, and others of the VM. */
#define HPR_TYPE     5 /* Metatable of a type; index: 0 nil, 1 boolean, 4 string, and so on. */
#define HPR_FINALIZE 6 /* It waits for its finalizer. */
#define HPR_TRACE    7 /* Constants of the trace that is being compiled. */

/* Kinds of parts. The collector does not count the last one. */
#define HPP_STATE   1 /* State of the VM and of its compiler. */
#define HPP_STRINGS 2 /* Hash table of strings. */
#define HPP_BUFFER  3 /* Buffer for strings. */
#define HPP_JIT     4 /* Buffers of the compiler. */
#define HPP_CTYPES  5 /* Types of the FFI. */
#define HPP_LIGHTUD 6 /* Upper bits of light userdata. */
#define HPP_MCODE   7 /* Machine code. */

/* State of a snapshot. */
#define HPS_DAMAGED 1 /* A list or an object of the VM is damaged: objects are missing. */
#define HPS_CUT     2 /* Frames or names of a deep stack are missing. */

#endif
