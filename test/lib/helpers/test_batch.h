/*
** The batch of a test.
*/

#ifndef TEST_BATCH_H
#define TEST_BATCH_H

#include <string.h>

#include "profile/capture/lj_batch.h"

static uint64_t batch_mem[BATCH_SIZE / sizeof(uint64_t)];
static Batch batch = { .mem = batch_mem, .size = BATCH_SIZE };

/* A sample as it stands in a batch, without words. The result is valid until the next call. */
static inline RawSample *raw_sample(int event, int state, uint64_t time_us, uint64_t weight)
{
  static struct {
    RawSample raw;
    uint64_t field[SPF_FIELDS_MAX];
  } sample;
  memset(&sample, 0, sizeof(sample));
  sample.raw.head.event = (uint8_t)event;
  sample.raw.head.state = (uint8_t)state;
  sample.raw.time_us = time_us;
  sample.raw.weight = weight;
  return &sample.raw;
}

#endif
