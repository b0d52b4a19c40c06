/*
** A library of the storm "libraries": 256 functions, each with another frame. FRAME changes
** the frames, library_key the results.
*/

extern const int library_key __attribute__((visibility("hidden")));

#define F(i) \
  int f##i(int a, int b) \
  { \
    volatile int c[8 + (0x##i * 7 + FRAME * 13) % 90]; \
    int j; \
    for (j = 0; j < 8; j++) c[j] = a + j; \
    return c[b & 7] * library_key + 0x##i; \
  }
#define F4(i)  F(i##0) F(i##1) F(i##2) F(i##3)
#define F16(i) F4(i##0) F4(i##1) F4(i##2) F4(i##3)
#define F64(i) F16(i##0) F16(i##1) F16(i##2) F16(i##3)

F64(0) F64(1) F64(2) F64(3)
