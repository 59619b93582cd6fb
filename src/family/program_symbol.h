/* Symbols of dimensions and the expressions that files write over them: "batch", "2*s0+1",
 * "past_len + seq", "(h-1)//2+1", "floor(w/32)", "Max(1, s0)". Knows names and numbers only. */
#ifndef TV_PROGRAM_SYMBOL_H
#define TV_PROGRAM_SYMBOL_H

#include "base/str.h"

typedef struct tv_symbol_value {
    tv_str name;
    double v;
} tv_symbol_value;

typedef struct tv_symbols {
    tv_symbol_value *v;
    size_t n, cap;
} tv_symbols;

void tv_symbols_set(tv_arena *a, tv_symbols *t, tv_str name, double v);
bool tv_symbols_get(const tv_symbols *t, tv_str name, double *v);

/* The expression's value. false: it names a symbol without a value, or cannot be read; *missing
 * is that symbol, or empty. */
bool tv_symbols_eval(const tv_symbols *t, tv_str expression, double *v, tv_str *missing);

/* One name, no expression. */
bool tv_symbol_is_name(tv_str s);

#endif
