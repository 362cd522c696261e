/*
 * Streams: how many chunks may be under way. The table decides in which states of a call chunks are
 * sent and taken (call_state.c); the core does not see the content of chunks.
 *
 * Both ends count in the same way: chunks that were sent or have arrived, and were not granted
 * again. The sender counts a chunk before the reader does, and takes a grant later. So an honest
 * sender never finds room that the reader does not have, and a reader can grant only chunks that
 * were sent: credit cannot be hoarded.
 */
#include "endpoint.h"

#define MAX_SIZE ((uint64_t)1 << 53) /* beyond it JavaScript's numbers are not exact */

static const char TOO_MUCH[] = "More chunks were sent than the stream's window allows";

/* The smaller one of two limits; 0 is no limit. */
static uint32_t smaller(uint32_t a, uint32_t b) { return a - 1 < b - 1 ? a : b; }

uint32_t abp_endpoint_streams(const abp_endpoint *ep) {
  return abp_features(ep) & ABP_STREAMS ? CALL_STREAM : 0;
}

void abp_endpoint_open_window(abp_endpoint *ep, uint32_t slot, uint32_t chunks, uint32_t bytes) {
  *table_stream(&ep->calls.table, slot) =
      (struct stream){.max_chunks = smaller(chunks, ep->config.stream_chunks),
                      .max_bytes = smaller(bytes, ep->config.stream_bytes)};
}

COLD void abp_endpoint_request_window(abp_endpoint *ep, uint32_t slot, uint32_t bytes) {
  const struct window *peer = &ep->session.peer;
  abp_endpoint_open_window(ep, slot, peer->chunks, smaller(bytes, peer->bytes));
}

static int has_room(const struct stream *stream) {
  return stream->chunks < stream->max_chunks && stream->bytes < stream->max_bytes;
}

/* A waiting handler continues when half of the window is free, not at the first grant: otherwise it
 * would send chunk by chunk, each granted by itself. At some point a reader grants all that it has
 * read, so the window does become free. */
static int is_crowded(const struct stream *stream) {
  return stream->chunks > stream->max_chunks / 2 || stream->bytes > stream->max_bytes / 2;
}

/* The obligations of this event in the table; the size goes with it. */
static uint32_t step(abp_endpoint *ep, uint32_t slot, enum call_event event, uint64_t size) {
  ep->calls.chunk_size = size;
  return abp_calls_step(&ep->calls, slot, event);
}

static void add_chunk(abp_endpoint *ep, uint32_t slot, uint64_t size, uint32_t owed) {
  struct stream *stream = table_stream(&ep->calls.table, slot);
  stream->chunks++;
  stream->bytes += size;
  abp_calls_owe(&ep->calls, slot, owed);
}

/* --- The callee ------------------------------------------------------------------------------- */

int abp_stream_wanted(const abp_endpoint *ep, abp_call call) {
  const uint32_t slot = abp_calls_live(&ep->calls, call);
  if (slot == NO_CALL) return 0;
  return (table_call(&ep->calls.table, slot)->flags & (CALL_STREAM | CALL_OUT)) == CALL_STREAM;
}

int abp_chunk(abp_endpoint *ep, abp_call call, uint64_t size) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  if (!abp_stream_wanted(ep, call)) return ABP_E_STATE;
  if (size > MAX_SIZE) size = MAX_SIZE;
  const uint32_t slot = abp_calls_slot(&ep->calls, call);
  const uint32_t owed = step(ep, slot, EV_CHUNK, size);
  if (!owed) return ABP_E_STATE;
  if (!has_room(table_stream(&ep->calls.table, slot))) return ABP_E_LIMIT;
  add_chunk(ep, slot, size, owed);
  return ABP_OK;
}

int abp_credit_received(abp_endpoint *ep, const abp_id *id, uint64_t chunks, uint64_t bytes) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  abp_session_heard(&ep->session, ep->calls.now);
  const uint32_t slot = abp_endpoint_find(ep, id, 0);
  const struct call *call = slot == NO_CALL ? NULL : table_call(&ep->calls.table, slot);
  if (!call || !(call->flags & CALL_STREAM)) {
    abp_endpoint_count(ep, ABP_STRAY);
    return ABP_OK;
  }
  /* The chunks were read while the result was on its way. */
  if (call_is_over(call->state)) return ABP_OK;
  struct stream *stream = table_stream(&ep->calls.table, slot);
  if (!chunks || chunks > stream->chunks || bytes > stream->bytes) {
    abp_endpoint_count(ep, ABP_OVERRUN);
    return ABP_OK;
  }
  const int was_crowded = is_crowded(stream);
  stream->chunks -= (uint32_t)chunks;
  stream->bytes -= bytes;
  if (was_crowded && !is_crowded(stream))
    abp_calls_owe(&ep->calls, slot, abp_calls_step(&ep->calls, slot, EV_CREDIT));
  return ABP_OK;
}

/* --- The caller ------------------------------------------------------------------------------- */

/* The stream has a gap, so its result would be incomplete: the call ends without waiting for it. */
COLD static void overrun(abp_endpoint *ep, uint32_t slot) {
  abp_endpoint_count(ep, ABP_OVERRUN);
  ep->calls.reason = TOO_MUCH;
  ep->calls.reason_length = sizeof TOO_MUCH - 1;
  struct call *call = table_call(&ep->calls.table, slot);
  if (!call->cause) call->cause = ABP_COMPLETED; /* it was not cancelled on request */
  abp_calls_step(&ep->calls, slot, EV_CANCEL_NO_WAIT);
}

int abp_chunk_received(abp_endpoint *ep, const abp_id *id, uint64_t size) {
  return abp_chunk_measured(ep, id, size, 0);
}

int abp_chunk_measured(abp_endpoint *ep, const abp_id *id, uint64_t size, uint64_t seen) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  abp_session_heard(&ep->session, ep->calls.now);
  const uint32_t slot = abp_endpoint_find(ep, id, CALL_OUT);
  const struct call *call = slot == NO_CALL ? NULL : table_call(&ep->calls.table, slot);
  if (!call || !(call->flags & CALL_STREAM)) {
    abp_endpoint_count(ep, ABP_STRAY);
    return ABP_OK;
  }
  const uint32_t owed = step(ep, slot, EV_CHUNK, size);
  struct stream *stream = table_stream(&ep->calls.table, slot);
  if (owed && seen > size) stream->unsaid += seen - size;
  if (!owed)
    abp_endpoint_count(ep, ABP_LATE);
  else if (size > MAX_SIZE || !has_room(stream) || stream->unsaid > stream->max_bytes)
    overrun(ep, slot);
  else
    add_chunk(ep, slot, size, owed);
  return ABP_OK;
}

int abp_chunk_read(abp_endpoint *ep, abp_call call, uint64_t size) {
  if (abp_endpoint_enter(ep) != ABP_OK) return ABP_E_UNDRAINED;
  const uint32_t slot = abp_calls_live(&ep->calls, call);
  if (slot == NO_CALL) return ABP_OK;
  const uint32_t flags = table_call(&ep->calls.table, slot)->flags;
  if ((flags & (CALL_STREAM | CALL_OUT)) != (CALL_STREAM | CALL_OUT)) return ABP_E_STATE;
  struct stream *stream = table_stream(&ep->calls.table, slot);
  if (stream->read_chunks == stream->chunks || size > stream->bytes - stream->read_bytes)
    return ABP_E_STATE;
  stream->read_chunks++;
  stream->read_bytes += size;
  const int all = stream->read_chunks == stream->chunks;
  if (all) stream->unsaid = 0;
  /* A peer that has not announced its window may wait for every grant. */
  if ((all && !(ep->session.peer.chunks && ep->session.peer.bytes)) ||
      stream->read_chunks >= stream->max_chunks - stream->max_chunks / 2 ||
      stream->read_bytes >= stream->max_bytes - stream->max_bytes / 2)
    abp_calls_owe(&ep->calls, slot, abp_calls_step(&ep->calls, slot, EV_READ));
  return ABP_OK;
}
