/*
** C side of the demonstration: Fibonacci numbers by recursion.
** lua_payload.lua calls it by FFI and does the same work in Lua.
*/

double c_payload(double n);

double c_payload(double n)
{
  return n < 2 ? n : c_payload(n - 1) + c_payload(n - 2);
}
