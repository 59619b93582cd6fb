CUDA_VISIBLE_DEVICES=3 python3 serve.py --port 8000
