----------------------------------------------------------------------------
-- Limits of all that comes from outside: profiles, programs, ELF files, requests.
--
-- limits.NAME is a number; limits.sentence() tells what the user reads. etc/limits writes the table into doc/limits.md.
-- No other module of the reader has a limit of its own.
----------------------------------------------------------------------------

local limits = {}

local KIB, MIB, GIB = 2^10, 2^20, 2^30
local TOO_LONG = "it has more than {} bytes"

-- Headings, and rows: name, number, unit, what it bounds, what the user reads. "{}" stands for the number, %s and %.0f
-- for values. In brackets: what happens without a sentence.
limits.ROWS = {
  "Streams",
  { "CHUNK", 16 * MIB, "bytes", "a chunk", "the chunk says it has %.0f bytes, expected less than {}" },
  { "DAMAGED", 128 * MIB, "bytes", "what is searched for chunks between whole ones",
    "%s; too much of the file is damaged to go on" },
  { "NUMBER_BYTES", 10, "bytes", "a number",
    "expected a record of sysprof, skipped the last %.0f bytes of this chunk" },
  { "NUMBER", 2^53, "", "ids, times, ages, sizes, lines", "(the same sentence)" },
  { "WEIGHT", 2^63, "", "a weight, and the sum of a stack's weights; above 2^53, they are rounded to 53 bits",
    "the weights of a stack add up to {} or more" },
  { "WIDE_NUMBER", 2^64, "", "addresses, counters, periods", "(the same sentence)" },
  { "FRAME_NUMBER", 2^51, "", "the number of a frame", "[frame out of range]" },
  { "FRAME_EXTRA", 2^26, "", "the second number of a frame", "[frame out of range]" },
  { "CLOSURES", 2^16, "", "the number of a closure", "(the closure has no number)" },
  { "COUNTERS", 2^16, "", "the id of a counter", "(passed over)" },
  { "SESSIONS", 2^16, "sessions", "a stream", "more than {} sessions, the others are left out" },
  { "OPEN_SESSIONS", 2^14, "sessions", "sessions that go on at a time",
    "more than {} sessions at a time, the others are left out" },
  { "STACK_FRAMES", 16384, "frames", "a stack", "a stack has more than {} frames" },
  { "LABELS", 256, "labels", "a set of labels", "a set has more than {} labels" },
  { "EVENT_NAME", 256, "bytes", "the name of an event or of its fields", "(cut)" },
  { "META_VALUE", 8 * KIB, "bytes", "a fact on the profile", "(cut)" },
  { "META_LIST", 4 * KIB, "bytes", "a list of the facts of several sessions", "(no more are listed)" },
  { "META_KEYS", 256, "facts", "a profile", "more than {} facts, the others are left out" },
  { "PERIODS", 100, "values", "a list of the periods and clocks of an event", "(no more are listed)" },
  { "PROBLEMS", 1000, "places", "damaged places that are kept", "and %.0f more damaged places" },
  { "OLD_RECORD", 16 * MIB, "bytes", "a record of Tarantool's stream",
    "expected a %s, found an invalid or cut record, %.0f bytes before the end" },
  { "OLD_SYMBOL", MIB, "bytes", "a symbol of Tarantool's stream", "(the address has no name)" },
  { "OLD_WORK", 2^28, "steps", "changes of symbols in Tarantool's stream, beside 64 steps for each byte",
    "symbols change too often in this stream" },

  "Profiles that are read together",
  { "THREADS", 2^17, "threads", "threads with samples", "more than {} threads, the others are left out" },
  { "LABEL_SETS", 2^18, "sets", "sets of labels", "more than {} sets of labels, the others are left out" },
  { "LANES", 2^20, "", "combinations of thread, event and labels",
    "more than {} combinations of thread, event and labels, the others are left out" },
  { "SAMPLES", 2^23, "samples", "different samples", "more than {} different samples, the others are left out" },
  { "STACKS", 2^23, "", "different frames, and different stacks",
    "more than {} different stacks, the others are left out" },
  { "MODULES", 4096, "modules", "modules of a session", "more than {} modules, the others are left out" },
  { "ALL_MODULES", 16384, "modules", "modules of all sessions", "more than {} modules, the others are left out" },
  { "DEFINITIONS", 512 * MIB, "bytes", "names and texts", "more than {} bytes of names, the others are left out" },
  { "ALIKE", 2^22, "", "comparisons of names of one length from 128 bytes on", "(cut; a number tells them apart)" },
  { "THINGS", 2^20, "things", "blocks that exist at a time", "more than {} things at a time, the others are left out" },
  { "SINGLES", 2^26, "samples", "single samples, for formats that show them",
    "more than {} single samples, the others are left out; --from and --to show a part" },
  { "MARKS", 2^20, "marks", "single marks, for formats that show them", "(only counted)" },
  { "TRACKS", 256, "threads", "threads whose activity is shown", "(only counted)" },
  { "CELLS", 2^23, "", "stacks by columns of time for a page of `wall`", "(the columns get longer)" },
  { "SPREAD_VALUES", 2^16, "", "values by strata of time in the page, for intervals", "(the strata get longer)" },
  { "CHANCE_STACKS", 2^23, "stacks", "a look at which boxes of an SVG picture may differ by chance",
    "(the other boxes have the colours of their changes)" },
  { "COLUMN_VALUES", 2^20, "", "values by columns of time in the page", "(the columns get longer)" },
  { "SEEN", 16 * MIB, "bytes", "decoded bytes that are remembered", "(decoded again)" },
  { "SEEN_STRING", 16 * KIB, "bytes", "one of them", "(decoded again)" },
  { "SEEN_DEPTH", 256, "nodes", "a search for one of them", "(all are decoded again)" },

  "Views and names",
  { "VIEW_FRAMES", 2^26, "frames", "a pass over the stacks, beside 64 frames for each byte of the profile",
    "%.0f sample%s left out: the stacks have too many frames for a profile of %.0f bytes; --thread, --from and " ..
    "--to show a part" },
  { "VIEW_NODES", 2^18, "nodes", "a tree, beside 2 nodes for each byte of the profile", "(the same sentence)" },
  { "VIEW_TEXT", 256 * MIB, "bytes", "folded stacks, beside 512 bytes for each byte of the profile",
    "(the same sentence)" },
  { "NAME", 4 * KIB, "bytes", "a name", "..." },
  { "NAME_PART", KIB, "bytes", "a name or a path in a name", "..." },
  { "LINE", 2^31, "", "a line of a source file", "(not known)" },
  { "SOURCE", 16 * MIB, "bytes", "a source file", "%s: it has more than {} bytes, expected a Lua file" },
  { "OPTION_VALUES", 500, "values", "an option that may stand several times",
    "option '%s': expected at most {} of them on a command line" },
  { "LEASE_SECONDS", 1, "s", "all waits for leases on files that are read",
    "user %s has a lease on it that keeps others from it; the kernel ends it within a minute, then try again" },
  { "SAME_FUNCTIONS", 2^16, "functions", "Lua functions of each profile that a comparison matches across edits",
    "by file, name and place only: a profile has more than {} Lua functions" },
  { "TOP_ROWS", 20000, "rows", "a table of top", "[others]" },

  "Heap snapshots",
  { "HEAP_BYTES", 4 * GIB - 2^16, "bytes", "a heap snapshot", "it has more than {} bytes" },
  { "HEAP_OBJECTS", 2^27, "objects", "a heap snapshot", "it has more than {} objects" },
  { "HEAP_ROOTS", 2^16, "roots", "a heap snapshot", "it has more than {} roots" },
  { "HEAP_ROWS", 1000, "rows", "a list of heap", "option '--limit': expected a number from 1 to {}" },
  { "HEAP_PREFIXES", 2^18, "strings", "different beginnings of strings in it", "[others]" },

  "Symbol files",
  { "SYMBOL_BYTES", GIB, "bytes", "what is read of all files",
    "is not read: the files with symbols have more than {} bytes" },
  { "SYMBOL_STEPS", 2^26, "steps", "looks at addresses in symbols of a table", "has too many symbols for one address" },
  { "SYMBOL_LINKS", 2^18, "symbols", "functions of other files that a file calls", "(no names of stubs)" },
  { "SYMBOL_TABLE", 256 * MIB, "bytes", "a table of a file", "is cut or damaged: its symbol table is not there" },
  { "ELF_SECTIONS", 2^18, "sections", "a file", "is cut or damaged: its section headers are not there" },
  { "ELF_NOTES", 64, "sections", "sections of notes", "(no build-id)" },
  { "ELF_NOTE", 64 * KIB, "bytes", "a section of notes", "(no build-id)" },
  { "DEBUG_LINK", 4 * KIB, "bytes", "a debug link", "(not followed)" },
  { "UNWIND_ENTRY", 4 * KIB, "bytes", "a common entry of unwind tables", "(no start of a function)" },
  { "SYMBOL_NAME", 4 * KIB, "bytes", "the name of a symbol", "(cut)" },
  { "CXX_NAME", KIB, "bytes", "a mangled name of C++", "(stays mangled)" },
  { "CXX_REFERENCES", 40, "", "references in it to its own parts", "(stays mangled)" },
  { "RUST_NAME", 4 * KIB, "bytes", "a mangled name of Rust", "(stays mangled)" },
  { "RUST_STEPS", 4000, "steps", "its parts", "(stays mangled)" },
  { "RUST_DEPTH", 100, "", "its nesting", "(stays mangled)" },
  { "PLAIN_NAME", 4 * KIB, "bytes", "a name that is not mangled any more", "(stays mangled)" },

  "Live programs",
  { "PACKET", 4 * KIB, "bytes", "a packet", "%s sent an answer that this version of sysprof does not know" },
  { "ANSWER_SENTENCE", 400, "bytes", "a sentence of a program", "..." },
  { "ANSWER_NOTES", 20, "sentences", "an answer", "(no more are shown)" },
  { "ANSWER_SECONDS", 3, "s", "an answer", "%s did not answer within %g s" },
  { "BUSY_SECONDS", 5, "s", "an answer on a loaded machine", "%s did not answer within %g s" },
  { "DONE_SECONDS", 10, "s", "the end of a recording", "%s did not answer within %g s" },
  { "MAP_BYTES", 64 * MIB, "bytes", "a map of compiled code", TOO_LONG },
  { "DUMP_BYTES", 16 * MIB, "bytes", "the lists of coroutines of a request", TOO_LONG },
  { "LIST_FRAMES", 2^20, "frames", "stacks of coroutines, for pprof",
    "more than {} frames of coroutines, the others are left out" },
  { "LIST_NAMES", 2^16, "names", "different frames of these",
    "more than {} different frames of coroutines, the others are left out" },
  { "JSON_DEPTH", 8, "", "the nesting of a list of coroutines in JSON",
    "byte %.0f of what the program sent is no JSON" },
  { "JSON_KEYS", 32, "members", "an object in it", "(the same sentence)" },
  { "JSON_NUMBER", 32, "bytes", "a number in it", "(the same sentence)" },
  { "WINDOW_BYTES", 256 * MIB, "bytes", "a recording for top, dump and serve", TOO_LONG },
  { "LIVE_STACKS", 2^19, "", "different frames and stacks of recordings for top, dump, serve and the summary of record",
    "more than {} different stacks, the others are left out; record and report show more" },
  { "LIVE_DEFINITIONS", 32 * MIB, "bytes", "names and texts of these",
    "more than {} bytes of names, the others are left out; record and report show more" },
  { "LIVE_FRAMES", 2^25, "frames", "a pass over the stacks of these",
    "%.0f sample%s left out: the stacks have more than {} frames; record and report show more" },
  { "LIVE_NODES", 2^20, "nodes", "a tree of these", "(the same sentence)" },
  { "LIVE_CELLS", 2^21, "", "stacks by columns of time of these, for a page of `wall`", "(the columns get longer)" },
  { "DUMP_STACKS", 16 * MIB, "bytes", "names and paths in the stacks of a process that dump shows",
    "the stacks of its threads have more than {} bytes, the others are left out" },
  { "RECORDING_BYTES", 16 * GIB, "bytes", "a recording of record", TOO_LONG },
  -- 64 VMs may have their own, and a name of 400 bytes counts as 96.
  { "RECORDING_SIZES", 64 * 5, "", "the same, in sizes of --max-size", "(the same sentence, with the bytes)" },
  { "PROC_TEXT", 16 * KIB, "bytes", "a file of procfs", "(cut)" },
  { "PROC_MAPS", 16 * MIB, "bytes", "a list of mapped files", "(cut)" },
  { "LIBRARY_BYTES", 64 * MIB, "bytes", "what is searched of a mapped file, without its holes", "%s has no LuaJIT" },
  { "LIBRARIES_SECONDS", 20, "s", "the search of all mapped files",
    "%s keeps its files from answering; they may lie on a file system that hangs" },
  { "FILES_SECONDS", 3, "s", "a single wait for a file that a process chose", "(the same sentence)" },
  { "FILES_MOST_SECONDS", 30, "s", "all waits for the files of a process", "(the same sentence)" },
  { "FOLDERS", 100, "folders", "folders of sockets", "%s is not live" },
  { "FOLDERS_OF_USER", 9, "folders", "names of the folder of a user", "... others have all names ..." },
  { "SOCKET_NAMES", 9, "sockets", "sockets of processes with one number", "%s is not live" },
  { "SMALL_FILE", MIB, "bytes", "a file of the command itself or of procfs", TOO_LONG },

  "Requests to serve",
  { "CONNECTIONS", 32, "connections", "connections with a request",
    "there are {} connections already; try again later" },
  { "SOCKETS", 128, "connections", "all connections", "(they wait)" },
  { "REQUESTS_WAITING", 16, "requests", "recordings in the queue",
    "another recording runs, and {} requests wait for it" },
  { "JOBS", 2, "jobs", "answers without a recording that are made at a time", "(they wait)" },
  { "HEADER", 8 * KIB, "bytes", "a header", "the header has more than {} bytes" },
  { "HEADER_SECONDS", 5, "s", "a header", "expected a whole request within {} s" },
  { "WRITE_SECONDS", 30, "s", "an answer without any progress", "(closed)" },
  { "CLOSE_SECONDS", 1, "s", "the close by the other side", "(closed)" },
  { "AFTER_REQUEST", 64 * KIB, "bytes", "what follows a request", "(closed)" },
  { "QUERY", 32, "parameters", "a query", "the query has more than {} parameters" },
  { "QUERY_EVENT", 200, "bytes", "a list of events", "event=%s: expected a list of events, such as cpu,alloc" },
  { "QUERY_SECONDS", 3600, "s", "a recording", "seconds=%s: expected a number from 0.01 to {}" },
  { "QUERY_SHOWN", 100, "bytes", "a part of a request in a sentence", "..." },
  { "JOB_SENTENCE", 1000, "bytes", "a sentence of an answer", "..." },

  "Outputs",
  { "PPROF_VALUE", 2^63, "", "a value of pprof, such as nanoseconds",
    "%.0f value%s too large for pprof, expected less than {}; the largest possible one stands there" },
  { "READER_SECONDS", 10, "s", "a wait for the reader of a pipe", "nobody reads it; expected a reader within {} s" },
}

local sentences = {}

-- Returns a number without a fraction as a text.
function limits.number_text(n)
  local power = n >= 2^53 and select(2, math.frexp(n)) - 1
  return power and n == 2^power and ("2^%d"):format(power) or ("%.0f"):format(n)
end

for _, row in ipairs(limits.ROWS) do
  if type(row) == "table" then
    local name, number, sentence = row[1], row[2], row[5]
    limits[name], sentences[name] = number, (sentence:gsub("{}", limits.number_text(number)))
  end
end

-- Returns what the user reads at a limit, with its values.
function limits.sentence(name, ...)
  return sentences[name]:format(...)
end

-- Returns what the user reads of a file with more bytes than this.
function limits.too_long(most)
  return (TOO_LONG:gsub("{}", limits.number_text(most)))
end

-- No limit is missing unnoticed.
return setmetatable(limits, { __index = function(_, name) error("no limit " .. tostring(name), 2) end })
