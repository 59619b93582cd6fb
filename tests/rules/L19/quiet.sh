CUDA_VISIBLE_DEVICES=4,5,6,7 torchrun --standalone --nproc_per_node=4 train.py
CUDA_VISIBLE_DEVICES=$GPUS torchrun --standalone --nproc_per_node=8 train.py
