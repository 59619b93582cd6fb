#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gres=gpu:a100:2
#SBATCH --cpus-per-task=16
srun torchrun --nproc-per-node 4 train.py
