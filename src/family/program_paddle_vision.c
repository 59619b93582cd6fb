/* Paddle's detection operators: boxes, anchors, regions of interest, suppression. What they keep
 * depends on the data; the most that their settings allow is taken. */
#include "program_paddle.h"

#include <math.h>

static int64_t axis_of(const tv_shape *s, uint32_t i)
{
    return i < s->rank ? s->d[i] : 1;
}

static uint32_t make(tv_running *r, tv_dtype dtype, uint32_t rank, const int64_t *d)
{
    const tv_shape s = tv_shape_of(rank, d);
    return tv_run_make(r, dtype, &s);
}

static size_t count_attr(const tv_node *n, const char *name)
{
    const tv_attr *a = tv_node_attr(n, name);
    if (!a)
        return 0;
    return a->kind == TV_ATTR_INTS || a->kind == TV_ATTR_FLOATS ? a->n : 1;
}

/* ---- anchors ---- */

PD_RULE(yolo_box)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    const int64_t anchors = (int64_t)count_attr(n, "anchors") / 2;
    const int64_t boxes = axis_of(s, 2) * axis_of(s, 3) * anchors;
    const int64_t b = axis_of(s, 0), classes = tv_pd_attr_int(r, n, "class_num", 1);
    const tv_dtype t = tv_run_at(r, x)->dtype;
    const uint32_t y[2] = {make(r, t, 3, (const int64_t[]){b, boxes, 4}),
                           make(r, t, 3, (const int64_t[]){b, boxes, classes})};
    TV_TRY(tv_pd_route(r, n, y, 2));
    tv_pd_out(r, n, "Boxes", 0, y[0]);
    tv_pd_out(r, n, "Scores", 1, y[1]);
    return NULL;
}

/* Priors at each place: one per aspect ratio and its inverse for each least size, and one for each
 * greatest size. */
static int64_t priors(tv_running *r, const tv_node *n)
{
    const tv_attr *ratios = tv_node_attr(n, "aspect_ratios");
    const bool flip = tv_pd_attr_num(r, n, "flip", 0) != 0;
    int64_t kinds = 1;
    for (size_t i = 0; ratios && ratios->kind == TV_ATTR_FLOATS && i < ratios->n; i++)
        if (fabs(ratios->u.floats[i] - 1) > 1e-6)
            kinds += flip ? 2 : 1;
    return kinds * (int64_t)count_attr(n, "min_sizes") + (int64_t)count_attr(n, "max_sizes");
}

static int64_t dense_priors(const tv_node *n)
{
    const int64_t *v = NULL;
    const size_t count = tv_node_ints(n, "densities", &v);
    int64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += v[i] * v[i];
    return all * (int64_t)count_attr(n, "fixed_ratios");
}

/* arg 0: prior_box, 1: density_prior_box, 2: anchor_generator. */
PD_RULE(prior_box)
{
    const uint32_t x = tv_pd_in(r, n, "Input", 0);
    TV_TRY(tv_run_need(r, x));
    const tv_shape *s = tv_run_shape(r, x);
    int64_t each = priors(r, n);
    if (rule->arg == 1)
        each = dense_priors(n);
    if (rule->arg == 2)
        each = (int64_t)(count_attr(n, "anchor_sizes") * count_attr(n, "aspect_ratios"));
    const bool flat = tv_pd_attr_num(r, n, "flatten_to_2d", 0) != 0;
    const int64_t h = axis_of(s, 2), w = axis_of(s, 3);
    const int64_t d[] = {h, w, each, 4}, two[] = {h * w * each, 4};
    const uint32_t y[2] = {make(r, TV_F32, flat ? 2 : 4, flat ? two : d),
                           make(r, TV_F32, flat ? 2 : 4, flat ? two : d)};
    TV_TRY(tv_pd_route(r, n, y, 2));
    tv_pd_out(r, n, rule->arg == 2 ? "Anchors" : "Boxes", 0, y[0]);
    tv_pd_out(r, n, "Variances", 1, y[1]);
    return NULL;
}

/* ---- boxes ---- */

PD_RULE(box_coder)
{
    const uint32_t prior = tv_pd_in(r, n, "PriorBox", 0), target = tv_pd_in(r, n, "TargetBox", 2);
    (void)rule;
    TV_TRY(tv_run_need(r, prior));
    TV_TRY(tv_run_need(r, target));
    const bool encodes = tv_pd_attr_is(r, n, "code_type", "encode_center_size");
    const tv_shape *t = tv_run_shape(r, target);
    const int64_t pairs[] = {axis_of(t, 0), axis_of(tv_run_shape(r, prior), 0), 4};
    const uint32_t y = encodes ? make(r, tv_run_at(r, target)->dtype, 3, pairs)
                               : tv_run_make(r, tv_run_at(r, target)->dtype, t);
    TV_TRY(tv_pd_route(r, n, &y, 1));
    tv_pd_out(r, n, "OutputBox", 0, y);
    return NULL;
}

PD_RULE(like_boxes)
{
    static const char *const in[] = {"Input", "X", "BBox"};
    static const char *const out[] = {"Output", "Out"};
    uint32_t x = TV_NO_VALUE;
    (void)rule;
    for (size_t i = 0; i < 3; i++)
        x = x == TV_NO_VALUE ? tv_pd_in(r, n, in[i], 0) : x;
    TV_TRY(tv_run_need(r, x));
    const uint32_t y = tv_run_make(r, tv_run_at(r, x)->dtype, tv_run_shape(r, x));
    TV_TRY(tv_pd_route(r, n, &y, 1));
    for (size_t i = 0; i < 2; i++)
        tv_pd_out(r, n, out[i], 0, y);
    return NULL;
}

PD_RULE(iou_similarity)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), y = tv_pd_in(r, n, "Y", 1);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, y));
    const int64_t d[] = {axis_of(tv_run_shape(r, x), 0), axis_of(tv_run_shape(r, y), 0)};
    const uint32_t out = make(r, tv_run_at(r, x)->dtype, 2, d);
    TV_TRY(tv_pd_route(r, n, &out, 1));
    tv_pd_out(r, n, "Out", 0, out);
    return NULL;
}

/* ---- suppression ---- */

/* Boxes [n, m, 4] and scores [n, classes, m]; at most keep_top_k per image stay. */
PD_RULE(multiclass_nms)
{
    const uint32_t boxes = tv_pd_in(r, n, "BBoxes", 0), scores = tv_pd_in(r, n, "Scores", 1);
    (void)rule;
    TV_TRY(tv_run_need(r, boxes));
    TV_TRY(tv_run_need(r, scores));
    const tv_shape *s = tv_run_shape(r, scores);
    const int64_t images = s->rank == 3 ? s->d[0] : 1;
    const int64_t most = s->rank == 3 ? s->d[1] * s->d[2] : axis_of(s, 0);
    const double keep = tv_pd_attr_num(r, n, "keep_top_k", -1);
    const int64_t kept = images * (keep > 0 && (int64_t)keep < most ? (int64_t)keep : most);
    const uint32_t y[3] = {
        tv_pd_make_guess(r, tv_run_at(r, boxes)->dtype, &(tv_shape){.rank = 2, .d = {kept, 6}}),
        tv_pd_make_guess(r, TV_I32, &(tv_shape){.rank = 2, .d = {kept, 1}}),
        make(r, TV_I32, 1, &images)};
    TV_TRY(tv_pd_route(r, n, y, 3));
    tv_pd_out(r, n, "Out", 0, y[0]);
    tv_pd_out(r, n, "Index", 1, y[1]);
    tv_pd_out(r, n, "NmsRoisNum", 2, y[2]);
    tv_pd_out(r, n, "RoisNum", 2, y[2]);
    return NULL;
}

PD_RULE(nms)
{
    const uint32_t x = tv_pd_in(r, n, "Boxes", 0);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    const tv_shape s = {.rank = 1, .d = {axis_of(tv_run_shape(r, x), 0)}};
    const uint32_t y = tv_pd_make_guess(r, TV_I64, &s);
    TV_TRY(tv_pd_route(r, n, &y, 1));
    tv_pd_out(r, n, "KeepBoxesIdxs", 0, y);
    return NULL;
}

/* ---- regions of interest ---- */

/* arg 1: position-sensitive, with channels of its own. */
PD_RULE(roi_pool)
{
    const uint32_t x = tv_pd_in(r, n, "X", 0), rois = tv_pd_in(r, n, "ROIs", 1);
    TV_TRY(tv_run_need(r, x));
    TV_TRY(tv_run_need(r, rois));
    const int64_t c =
        rule->arg ? tv_pd_attr_int(r, n, "output_channels", 1) : axis_of(tv_run_shape(r, x), 1);
    const int64_t d[] = {axis_of(tv_run_shape(r, rois), 0), c,
                         tv_pd_attr_int(r, n, "pooled_height", 1),
                         tv_pd_attr_int(r, n, "pooled_width", 1)};
    const uint32_t y[2] = {make(r, tv_run_at(r, x)->dtype, 4, d), make(r, TV_I64, 4, d)};
    TV_TRY(tv_pd_route(r, n, y, 2));
    tv_pd_out(r, n, "Out", 0, y[0]);
    tv_pd_out(r, n, "Argmax", 1, y[1]);
    return NULL;
}

PD_RULE(generate_proposals)
{
    const uint32_t scores = tv_pd_in(r, n, "Scores", 0);
    (void)rule;
    TV_TRY(tv_run_need(r, scores));
    const int64_t images = axis_of(tv_run_shape(r, scores), 0);
    const int64_t kept = images * tv_pd_attr_int(r, n, "post_nms_topN", 1000);
    const uint32_t y[3] = {tv_pd_make_guess(r, TV_F32, &(tv_shape){.rank = 2, .d = {kept, 4}}),
                           tv_pd_make_guess(r, TV_F32, &(tv_shape){.rank = 2, .d = {kept, 1}}),
                           make(r, TV_I32, 1, &images)};
    TV_TRY(tv_pd_route(r, n, y, 3));
    tv_pd_out(r, n, "RpnRois", 0, y[0]);
    tv_pd_out(r, n, "RpnRoiProbs", 1, y[1]);
    tv_pd_out(r, n, "RpnRoisNum", 2, y[2]);
    return NULL;
}

/* Regions shared out over the levels: evenly, for lack of better. */
PD_RULE(distribute_proposals)
{
    const uint32_t x = tv_pd_in(r, n, "FpnRois", 0);
    const size_t levels = tv_pd_out_count(r, n, "MultiFpnRois", 0);
    (void)rule;
    TV_TRY(tv_run_need(r, x));
    const int64_t all = axis_of(tv_run_shape(r, x), 0);
    const tv_shape part = {.rank = 2,
                           .d = {levels ? (all + (int64_t)levels - 1) / (int64_t)levels : all, 4}};
    for (size_t i = 0; i < levels; i++) {
        const uint32_t y = tv_pd_make_guess(r, tv_run_at(r, x)->dtype, &part);
        TV_TRY(tv_pd_route(r, n, &y, 1));
        tv_pd_out_at(r, n, "MultiFpnRois", 0, i, y);
        tv_pd_out_at(r, n, "MultiLevelRoIsNum", 1, i,
                     tv_pd_make_guess(r, TV_I32, &(tv_shape){.rank = 1, .d = {1}}));
    }
    const int64_t index[] = {all, 1};
    tv_pd_out(r, n, "RestoreIndex", 2, make(r, TV_I32, 2, index));
    return NULL;
}

PD_RULE(collect_proposals)
{
    const int64_t kept = tv_pd_attr_int(r, n, "post_nms_topN", 1000);
    (void)rule;
    const uint32_t y = tv_pd_make_guess(r, TV_F32, &(tv_shape){.rank = 2, .d = {kept, 4}});
    TV_TRY(tv_pd_route(r, n, &y, 1));
    tv_pd_out(r, n, "FpnRois", 0, y);
    tv_pd_out(r, n, "RoisNum", 1, make(r, TV_I32, 1, (const int64_t[]){1}));
    return NULL;
}

static const tv_rule rules[] = {
    {"yolo_box", yolo_box, 0},
    {"prior_box", prior_box, 0},
    {"density_prior_box", prior_box, 1},
    {"anchor_generator", prior_box, 2},
    {"box_coder", box_coder, 0},
    {"box_clip", like_boxes, 0},
    {"polygon_box_transform", like_boxes, 0},
    {"iou_similarity", iou_similarity, 0},
    {"multiclass_nms", multiclass_nms, 0},
    {"multiclass_nms2", multiclass_nms, 0},
    {"multiclass_nms3", multiclass_nms, 0},
    {"matrix_nms", multiclass_nms, 0},
    {"locality_aware_nms", multiclass_nms, 0},
    {"nms", nms, 0},
    {"roi_align", roi_pool, 0},
    {"roi_pool", roi_pool, 0},
    {"psroi_pool", roi_pool, 1},
    {"prroi_pool", roi_pool, 0},
    {"generate_proposals", generate_proposals, 0},
    {"generate_proposals_v2", generate_proposals, 0},
    {"distribute_fpn_proposals", distribute_proposals, 0},
    {"collect_fpn_proposals", collect_proposals, 0},
    {"bipartite_match", tv_pd_as_declared, 0},
    {"target_assign", tv_pd_as_declared, 0},
    {"mine_hard_examples", tv_pd_as_declared, 0},
    {"rpn_target_assign", tv_pd_as_declared, 0},
    {"generate_proposal_labels", tv_pd_as_declared, 0},
    {"generate_mask_labels", tv_pd_as_declared, 0},
    {"retinanet_target_assign", tv_pd_as_declared, 0},
    {"retinanet_detection_output", tv_pd_as_declared, 0},
    {"box_decoder_and_assign", tv_pd_as_declared, 0},
    {"yolo_box_head", like_boxes, 0},
    {"yolo_box_post", tv_pd_as_declared, 0},
    {"detection_map", tv_pd_as_declared, 0},
};

const tv_rule_table tv_rules_paddle_vision = {TV_DIALECT_PADDLE, "", rules,
                                              sizeof rules / sizeof *rules};
