docker run --gpus all --shm-size=16g pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime python train.py
docker run --rm --gpus all nvidia/cuda:12.4.1-base-ubuntu22.04 nvidia-smi
podman run --ipc=host --device nvidia.com/gpu=all quay.io/me/torch-train:3 torchrun train.py
