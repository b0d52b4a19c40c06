/*
** Samples of a source that exists in the tests only. They return 0 where nothing is recorded.
*/

#ifndef ROAD_SOURCE_H
#define ROAD_SOURCE_H

#include <stdint.h>

/* Take a sample here. thing, type, labels: numbers, 0 for none. Returns the session that has
** it, from 1.
*/
uint32_t road_take(uint32_t bytes, uint32_t objects, uint32_t thing, uint32_t type,
		   uint32_t labels);

/* A thing of a session's sample has ended. age: in cycles. */
uint32_t road_end(uint32_t session, uint32_t thing, uint32_t age);

/* Mark this moment. kind: SPF_MARK_*. */
uint32_t road_mark(uint32_t kind, uint32_t arg);

#endif
