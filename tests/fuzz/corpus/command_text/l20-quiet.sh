torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=gpu01:29400 train.py
torchrun --nnodes=1 --nproc_per_node=8 train.py
