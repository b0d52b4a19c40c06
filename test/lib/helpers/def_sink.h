/*
** Sink for definitions of the load map: it takes each record, and forgets it.
*/

#ifndef DEF_SINK_H
#define DEF_SINK_H

#include "profile/symbols/lj_loadmap.h"

static uint8_t def_sink_buf[65536];
static WBuf def_sink_wb;

static int def_sink_commit(void *ctx)
{
  WBuf *w = (WBuf *)ctx;
  w->pos = w->done; /* Forget the record. */
  w->overflow = 0;
  return 1;
}

static const DefSink def_sink = { &def_sink_wb, def_sink_commit, &def_sink_wb };

static size_t def_sink_write(const void **data, size_t len, void *ctx)
{
  (void)data;
  (void)ctx;
  return len;
}

/* Call it before the first definition. */
static void def_sink_begin(void)
{
  lj_wbuf_init(&def_sink_wb, def_sink_buf, sizeof(def_sink_buf), 0, def_sink_write, NULL);
}

#endif
