/*
** task-clock at random times, below the rate of the kernel's tick.
** Context: see lj_clockops.h.
**
** The kernel checks CPU timers on its tick, and it switches threads there. A thread that shares
** its processor then meets the tick in the same places again and again. A task clock with random
** periods does not. But it makes each switch of its thread dearer. So a timer takes its place
** while the thread is switched often, and after the program has closed the descriptor.
*/

#ifndef _LJ_CLOCK_OFFTICK_H
#define _LJ_CLOCK_OFFTICK_H

#include "profile/clock/lj_clockops.h"

/* Switches in a second of CPU time above which the timer takes over. An event makes a switch take
** up to 2 us longer on virtual machines.
*/
#define OFFTICK_SWITCHES 3000

LJ_DATA const ClockOps lj_clock_offtick_ops;

#endif
