/*
** The batch of a test.
*/

#ifndef TEST_BATCH_H
#define TEST_BATCH_H

#include "profile/format/lj_batch.h"

static uint64_t batch_mem[BATCH_SIZE / sizeof(uint64_t)];
static Batch batch = { .mem = batch_mem, .size = BATCH_SIZE };

#endif
