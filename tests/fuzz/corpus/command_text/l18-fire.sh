docker run --gpus all --network=host --shm-size=32g --device=/dev/infiniband -e NCCL_IB_HCA=mlx5 acme/train:2 torchrun --nnodes=4 --node_rank=$RANK --master_addr=gpu01 --nproc_per_node=8 train.py
