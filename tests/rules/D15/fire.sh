#!/bin/bash
#SBATCH --gres=gpu:8
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=48
export OMP_NUM_THREADS=48
torchrun --standalone --nproc_per_node=8 train.py
