----------------------------------------------------------------------------
-- Names of the format of heap snapshots: those of src/profile/format/lj_heap_format.h, which specifies the bytes.
----------------------------------------------------------------------------

local heapgrammar = {
  HPF_VERSION = 1, HPF_SUM = 0xcbf29ce484222325ULL, HPF_PRIME = 0x100000001b3ULL, HPF_NO_STRINGS = 1,

  HPF_STR = 1, HPF_UPVAL = 2, HPF_THREAD = 3, HPF_PROTO = 4, HPF_FUNC = 5, HPF_TRACE = 6, HPF_CDATA = 7, HPF_TAB = 8,
  HPF_UDATA = 9, HPF_ROOT = 10, HPF_PART = 11, HPF_END = 12,

  HPO_FIXED = 1, HPO_CLOSED = 1, HPO_WEAKKEY = 1, HPO_WEAKVALUE = 2, HPO_MAIN = 1, HPO_RUNNING = 2,

  HPK_END = 0, HPK_FALSE = 1, HPK_TRUE = 2, HPK_LIGHTUD = 3, HPK_NUM = 4, HPK_INT = 5, HPK_OBJ = 6,

  HPR_MAIN = 1, HPR_GLOBALS = 2, HPR_REGISTRY = 3, HPR_VM = 4, HPR_TYPE = 5, HPR_FINALIZE = 6, HPR_TRACE = 7,

  HPP_STATE = 1, HPP_STRINGS = 2, HPP_BUFFER = 3, HPP_JIT = 4, HPP_CTYPES = 5, HPP_LIGHTUD = 6, HPP_MCODE = 7,

  HPS_DAMAGED = 1, HPS_CUT = 2,
}

heapgrammar.MAGIC = "ljh"

return heapgrammar
