docker run --gpus all -it -v /data:/data pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime python train.py --workers 16 --batch-size 256
