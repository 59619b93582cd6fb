/* The interface's words for the phases of a model's life. */
#include "life.h"

const char *tv_life_name(tv_life v)
{
    static const char *const names[TV_LIFE_COUNT] = {
        [TV_LIFE_TRAIN] = "train", [TV_LIFE_VALIDATE] = "validate", [TV_LIFE_EXPORT] = "export",
        [TV_LIFE_BUILD] = "build", [TV_LIFE_SERVE] = "serve",
    };
    return names[v];
}

const char *tv_life_words(tv_life v)
{
    static const char *const words[TV_LIFE_COUNT] = {
        [TV_LIFE_TRAIN] = N_("training"), [TV_LIFE_VALIDATE] = N_("validation"),
        [TV_LIFE_EXPORT] = N_("export"),  [TV_LIFE_BUILD] = N_("building the engine"),
        [TV_LIFE_SERVE] = N_("serving"),
    };
    return words[v];
}

const char *tv_target_name(tv_target v)
{
    static const char *const names[TV_TARGET_COUNT] = {
        [TV_TARGET_UNSAID] = "",
        [TV_TARGET_NONE] = "none",
        [TV_TARGET_TORCHSCRIPT] = "torchscript",
        [TV_TARGET_TORCH_EXPORT] = "torch-export",
        [TV_TARGET_ONNX] = "onnx",
        [TV_TARGET_COMPILE] = "compile",
        [TV_TARGET_TENSORRT] = "tensorrt",
        [TV_TARGET_PADDLE_INFERENCE] = "paddle-inference",
        [TV_TARGET_PADDLE_TENSORRT] = "paddle-tensorrt",
        [TV_TARGET_VLLM] = "vllm",
        [TV_TARGET_LLAMA_CPP] = "llama.cpp",
    };
    return names[v];
}
