/* SPDX-License-Identifier: Apache-2.0 */
#include "record/tfevents.h"

#include <string.h>

/* Field numbers in event.proto, summary.proto and tensor.proto. */
enum {
    EVENT_TIME = 1,
    EVENT_STEP = 2,
    EVENT_FILE_VERSION = 3,
    EVENT_SUMMARY = 5,
    EVENT_SESSION_LOG = 7,
    SESSION_LOG_STATUS = 1,
    SESSION_LOG_START = 1,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
    VALUE_TENSOR = 8,
    VALUE_METADATA = 9,
    METADATA_PLUGIN = 1,
    METADATA_CLASS = 4,
    METADATA_CLASS_TENSOR = 2,
    PLUGIN_NAME = 1,
    TENSOR_DTYPE = 1,
    TENSOR_DTYPE_STRING = 7,
    TENSOR_SHAPE = 2,
    TENSOR_STRING = 8,
};
enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

uint32_t tfevents_crc32c(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static void add_le(struct str *out, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        str_addn(out, &(char){ (char)(v >> 8 * i) }, 1);
}

static void add_crc(struct str *out, const void *bytes, size_t n)
{
    uint32_t crc = tfevents_crc32c(bytes, n);
    add_le(out, (uint32_t)((crc >> 15 | crc << 17) + 0xa282ead8u), 4);
}

static void add_record(struct str *out, const struct str *event)
{
    size_t at = out->len;
    add_le(out, event->len, 8);
    add_crc(out, out->s + at, 8);
    str_addn(out, event->s, event->len);
    add_crc(out, event->s, event->len);
}

static void add_varint(struct str *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        str_addn(out, &(char){ (char)(v | 0x80) }, 1);
    str_addn(out, &(char){ (char)v }, 1);
}

static void add_key(struct str *out, int field, enum wire wire)
{
    add_varint(out, (uint64_t)field << 3 | wire);
}

static void add_number(struct str *out, int field, uint64_t v)
{
    add_key(out, field, WIRE_VARINT);
    add_varint(out, v);
}

static void add_bytes(struct str *out, int field, const char *bytes, size_t n)
{
    add_key(out, field, WIRE_BYTES);
    add_varint(out, n);
    str_addn(out, bytes, n);
}

static void add_double(struct str *out, int field, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    add_key(out, field, WIRE_64);
    add_le(out, bits, 8);
}

static void add_float(struct str *out, int field, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    add_key(out, field, WIRE_32);
    add_le(out, bits, 4);
}

/* Appends the inner message to the outer one and clears it. */
static void add_message(struct str *out, int field, struct str *inner)
{
    add_bytes(out, field, inner->s ? inner->s : "", inner->len);
    str_release(inner);
}

static void begin_event(struct str *event, double time, uint64_t step)
{
    add_double(event, EVENT_TIME, time);
    if (step)
        add_number(event, EVENT_STEP, step);
}

static void end_event(struct str *out, struct str *event)
{
    add_record(out, event);
    str_release(event);
}

void tfevents_add_version(struct str *out, double time)
{
    static const char version[] = "brain.Event:2";
    struct str event = { 0 };
    begin_event(&event, time, 0);
    add_bytes(&event, EVENT_FILE_VERSION, version, strlen(version));
    end_event(out, &event);
}

void tfevents_add_start(struct str *out, double time, uint64_t step)
{
    struct str event = { 0 }, session = { 0 };
    begin_event(&event, time, step);
    add_number(&session, SESSION_LOG_STATUS, SESSION_LOG_START);
    add_message(&event, EVENT_SESSION_LOG, &session);
    end_event(out, &event);
}

void tfevents_add_scalars(struct str *out, double time, uint64_t step, const struct tfevents_scalar *values,
                          size_t n)
{
    struct str event = { 0 }, summary = { 0 }, value = { 0 };
    begin_event(&event, time, step);
    for (size_t i = 0; i < n; i++) {
        add_bytes(&value, VALUE_TAG, values[i].tag, strlen(values[i].tag));
        add_float(&value, VALUE_SIMPLE, (float)values[i].value);
        add_message(&summary, SUMMARY_VALUE, &value);
    }
    add_message(&event, EVENT_SUMMARY, &summary);
    end_event(out, &event);
}

/* A tensor of one string. */
static void add_text_tensor(struct str *value, const char *text)
{
    struct str tensor = { 0 }, no_dimensions = { 0 };
    add_number(&tensor, TENSOR_DTYPE, TENSOR_DTYPE_STRING);
    add_message(&tensor, TENSOR_SHAPE, &no_dimensions);
    add_bytes(&tensor, TENSOR_STRING, text, strlen(text));
    add_message(value, VALUE_TENSOR, &tensor);
}

static void add_text_metadata(struct str *value)
{
    struct str metadata = { 0 }, plugin = { 0 };
    add_bytes(&plugin, PLUGIN_NAME, "text", 4);
    add_message(&metadata, METADATA_PLUGIN, &plugin);
    add_number(&metadata, METADATA_CLASS, METADATA_CLASS_TENSOR);
    add_message(value, VALUE_METADATA, &metadata);
}

void tfevents_add_text(struct str *out, double time, uint64_t step, const char *tag, const char *text)
{
    struct str event = { 0 }, summary = { 0 }, value = { 0 };
    begin_event(&event, time, step);
    add_bytes(&value, VALUE_TAG, tag, strlen(tag));
    add_text_tensor(&value, text);
    add_text_metadata(&value);
    add_message(&summary, SUMMARY_VALUE, &value);
    add_message(&event, EVENT_SUMMARY, &summary);
    end_event(out, &event);
}
