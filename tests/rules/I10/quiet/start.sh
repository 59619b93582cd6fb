CUDA_VISIBLE_DEVICES=3 numactl -N 1 -m 1 python3 serve.py --port 8000
