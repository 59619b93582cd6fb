/* What the parts of the diffusion family share: the record of a denoiser or autoencoder and the
 * builders of each class. */
#ifndef TV_DIFFUSION_H
#define TV_DIFFUSION_H

#include "family.h"
#include "pieces.h"

typedef struct tv_diffusion tv_diffusion;
struct tv_diffusion {
    const tv_json *c;
    double latent; /* own side of the sample, in latent cells */
    double scale;  /* pixels per cell */
    double text;   /* tokens of the condition */
    void (*put)(tv_emit *e, const tv_diffusion *d, const tv_setting *set);
};

/* Cells of the sample for a setting. */
typedef struct tv_grid {
    double h, w;
} tv_grid;
tv_grid tv_diffusion_grid(const tv_diffusion *d, const tv_setting *set);
double tv_diffusion_text(const tv_diffusion *d, const tv_setting *set);

/* unet.c: UNet2DConditionModel and AutoencoderKL. */
void tv_put_unet(tv_emit *e, const tv_diffusion *d, const tv_setting *set);
void tv_put_autoencoder(tv_emit *e, const tv_diffusion *d, const tv_setting *set);
/* dit.c: transformers over latent patches. */
void tv_put_flux(tv_emit *e, const tv_diffusion *d, const tv_setting *set);
void tv_put_sd3(tv_emit *e, const tv_diffusion *d, const tv_setting *set);
void tv_put_hunyuan(tv_emit *e, const tv_diffusion *d, const tv_setting *set);
void tv_put_pixart(tv_emit *e, const tv_diffusion *d, const tv_setting *set);

#endif
