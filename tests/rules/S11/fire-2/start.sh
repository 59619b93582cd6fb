docker run --rm -it --shm-size=8g -v /data:/data mycompany/trainer:1.4 python train.py --epochs 3
