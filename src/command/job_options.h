/* Option rows that several commands share: MODEL, JOB, MACHINE, MONEY and ANY of the interface.
 * The JOB rows fill desc/job.h; the others fill the structs below. */
#ifndef TV_JOB_OPTIONS_H
#define TV_JOB_OPTIONS_H

#include "desc/job.h"
#include "options.h"

typedef struct tv_model_options {
    double params; /* --params: stands for MODEL; 0 not said */
    tv_str base;   /* --base: the model that an adapter joins; empty: as the adapter says */
} tv_model_options;

typedef struct tv_machine_options {
    tv_str gpu; /* slugs or names, comma-separated */
    uint32_t gpus;
    uint32_t nodes;
    tv_str server;
    tv_str topo_file;
    tv_str disk;
    uint32_t cpu_cores;
    double ram_bytes;
} tv_machine_options;

typedef enum tv_currency { TV_CURRENCY_DEFAULT, TV_CNY, TV_USD, TV_CURRENCY_COUNT } tv_currency;

typedef struct tv_money_options {
    double fx; /* CNY for one USD; 0 not said */
    double budget;
    tv_currency currency;
    double deadline_s;
    double hours_per_year;
    double kwh_price;
    double pue;
    tv_str prices_file;
} tv_money_options;

typedef enum tv_aim {
    TV_AIM_DEFAULT, /* value */
    TV_AIM_CHEAPEST,
    TV_AIM_FASTEST,
    TV_AIM_VALUE,
    TV_AIM_COUNT,
} tv_aim;

typedef struct tv_any_options {
    tv_aim aim;
    tv_texts set; /* "TERM=VALUE" as given */
    double measured_bytes;
    double measured_step_s;
    bool rule_of_thumb;
    bool require;
    bool explain;
} tv_any_options;

extern const tv_option tv_model_rows[];
extern const tv_option tv_job_rows[];
extern const tv_option tv_machine_rows[];
extern const tv_option tv_money_rows[];
extern const tv_option tv_any_rows[];

/* Their lengths, as constants that an initialiser may use. */
enum {
    TV_MODEL_ROWS = 2,
    TV_JOB_ROWS = 32,
    TV_MACHINE_ROWS = 8,
    TV_MONEY_ROWS = 8,
    TV_ANY_ROWS = 7,
};

/* What a job holds before parsing: everything "not said". */
void tv_job_unsaid(tv_job *job);

const char *tv_aim_name(tv_aim v);
const char *tv_currency_name(tv_currency v);

#endif
