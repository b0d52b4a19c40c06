----------------------------------------------------------------------------
-- Sysprof reader: the constants of the event stream.
--
-- Mirrors src/profile/format/lj_sysprof_format.h, which is the specification, name
-- by name; a test compares the two. No other module holds a number of the
-- stream. Read the header for what each of them means.
----------------------------------------------------------------------------

return {
  -- The magics, as the header's grammar spells them.
  MAGIC_SYMTAB = "ljs",
  MAGIC_PROFILE = "ljp",
  MAGIC_CHUNK = "ljc",

  SPF_SYMTAB_VERSION = 3,
  SPF_SYMTAB_END = 0x80,
  SPF_VERSION = 3,
  SPF_PROLOGUE_SIZE = 15,
  SPF_CHUNK_HEADER = 16,
  SPF_CHUNK_MAX = 16 * 1024 * 1024,

  -- Tags of records.
  SPF_META = 0x01,
  SPF_CONTEXT = 0x02,
  SPF_MODULE = 0x03,
  SPF_LFUNC = 0x04,
  SPF_FFUNC = 0x05,
  SPF_HSYM = 0x06,
  SPF_COUNTERS = 0x08,
  SPF_END = 0x09,
  SPF_EVENT = 0x0a,
  SPF_THREAD = 0x0b,
  SPF_STACK = 0x40,
  SPF_STACK_LENGTH = 0x3f,
  SPF_SAMPLE = 0x80,
  SPF_SAMPLE_WEIGHT_IS_TIME = 0x40,
  SPF_SAMPLE_EVENT = 0x30,
  SPF_SAMPLE_STATE = 0x0f,

  -- Events of a session.
  SPF_EVENTS_MAX = 4,
  SPF_UNIT_US = 0,
  SPF_UNIT_COUNT = 1,

  -- Kinds of frames.
  SPF_FRAME_LFUNC = 0,
  SPF_FRAME_FFUNC = 1,
  SPF_FRAME_CFUNC = 2,
  SPF_FRAME_CBOUND = 3,
  SPF_FRAME_RESUME = 4,
  SPF_FRAME_HOST = 5,
  SPF_FRAME_VM = 6,
  SPF_FRAME_CUT = 7,
  SPF_FRAME_BROKEN = 8,
  SPF_FRAME_TRACE = 9,
  SPF_FRAME_WORK = 10,
  SPF_FRAME_NEAR = 11,
  SPF_FRAME_LSAME = 12,

  -- Work of the VM.
  SPF_WORK_GC = 0,
  SPF_WORK_RECORD = 1,
  SPF_WORK_OPT = 2,
  SPF_WORK_ASM = 3,
  SPF_WORK_EXIT = 4,

  -- Phases of the garbage collector.
  SPF_GC_PAUSE = 0,
  SPF_GC_PROPAGATE = 1,
  SPF_GC_ATOMIC = 2,
  SPF_GC_SWEEPSTRING = 3,
  SPF_GC_SWEEP = 4,
  SPF_GC_FINALIZE = 5,

  -- States of the VM.
  SPF_VMST_INTERP = 0,
  SPF_VMST_LFUNC = 1,
  SPF_VMST_FFUNC = 2,
  SPF_VMST_CFUNC = 3,
  SPF_VMST_GC = 4,
  SPF_VMST_EXIT = 5,
  SPF_VMST_RECORD = 6,
  SPF_VMST_OPT = 7,
  SPF_VMST_ASM = 8,
  SPF_VMST_TRACE = 9,
  SPF_VMST__MAX = 10,

  -- Why a stack is broken.
  SPF_BROKEN_NO_BASE = 0,
  SPF_BROKEN_CHAIN = 1,
  SPF_BROKEN_STACK_MOVE = 2,
  SPF_BROKEN_FAULT = 3,
  SPF_BROKEN_NO_CFI = 4,
  SPF_BROKEN_NOT_VM = 5,
  SPF_BROKEN_JOIN = 6,
  SPF_BROKEN_TRACE = 7,
  SPF_BROKEN__MAX = 8,

  -- Counters.
  SPF_COUNTER_LOST_BUFFER = 16,
  SPF_COUNTER_LOST_WRITER = 17,
  SPF_COUNTER_LOST_NESTED = 18,
  SPF_COUNTER_OVERRUNS = 19,
  SPF_COUNTER_HANDLER_NS = 20,
  SPF_COUNTER_HANDLER_MAX_NS = 21,
  SPF_COUNTER_THROTTLED = 22,
  SPF_COUNTER_HANDLER_P99_NS = 23,
  SPF_COUNTER_TOTAL = 24,
  SPF_COUNTER_WALL_US = 28,
  SPF_COUNTER_LOST_QUEUE = 29,
  SPF_COUNTER_UNSAMPLED = 30,
  SPF_COUNTER_LUA_BROKEN = 32,
  SPF_COUNTER_HOST_BROKEN = 48,
  SPF_COUNTER__MAX = 64,
}
