docker run --gpus all --ipc=host --cpus=8 acme/train:2 torchrun --standalone --nproc_per_node=4 train.py --num-workers 6
