docker run --rm -it --runtime=nvidia --ipc=host nvcr.io/nvidia/pytorch:24.05-py3 python bench.py
docker run -d -p 5432:5432 postgres:16
docker run --device=/dev/kfd --device=/dev/dri --ipc=host rocm/pytorch:latest python bench.py
