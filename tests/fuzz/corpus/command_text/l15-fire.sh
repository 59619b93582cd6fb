docker run --rm -it --ipc=host \
  -v $HOME/models:/models \
  nvcr.io/nvidia/pytorch:24.05-py3 python bench.py
