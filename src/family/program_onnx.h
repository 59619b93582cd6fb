/* What the ONNX rules share: element types by number, axes from attributes or operands, outputs. */
#ifndef TV_PROGRAM_ONNX_H
#define TV_PROGRAM_ONNX_H

#include "program_shape.h"

/* TensorProto.DataType; unknown where the number names no type of numbers. */
tv_dtype tv_opset_dtype(int64_t number);

/* Integers of an attribute, else of operand i. *known is false where the operand is given and its
 * contents are not known. Absent: none. */
const int64_t *tv_opset_ints(tv_running *r, const tv_node *n, const char *attr, size_t operand,
                             size_t *count, bool *known);

/* First output. */
const tv_err *tv_opset_done(tv_running *r, const tv_node *n, uint32_t y) TV_CHECKED;
/* The shape that depends on data: as stated, else `most`; one ROUTE step with all operands and
 * outputs. dtypes: one per output. */
const tv_err *tv_opset_guess(tv_running *r, const tv_node *n, const tv_dtype *dtypes,
                             const tv_shape *most, size_t n_out) TV_CHECKED;
/* All operands, in order. */
const uint32_t *tv_opset_operands(tv_running *r, const tv_node *n);
bool tv_opset_is(tv_str s, const char *word);

/* Window attributes of Conv and pools: kernel_shape, strides, pads, dilations, auto_pad. */
tv_window tv_opset_window(const tv_node *n);

extern const tv_rule_table tv_rules_onnx_math;
extern const tv_rule_table tv_rules_onnx_layout;
extern const tv_rule_table tv_rules_onnx_index;
extern const tv_rule_table tv_rules_onnx_window;
extern const tv_rule_table tv_rules_onnx_net;
extern const tv_rule_table tv_rules_onnx_flow;
extern const tv_rule_table tv_rules_onnx_signal;
extern const tv_rule_table tv_rules_onnx_quant;
extern const tv_rule_table tv_rules_onnx_ml;
extern const tv_rule_table tv_rules_onnx_text;
extern const tv_rule_table tv_rules_onnx_training;
extern const tv_rule_table tv_rules_onnx_ort;
extern const tv_rule_table tv_rules_onnx_ort_attention;
extern const tv_rule_table tv_rules_onnx_ort_quant;

#endif
