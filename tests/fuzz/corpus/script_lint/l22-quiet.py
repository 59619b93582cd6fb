import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

local_rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("nccl")
torch.cuda.set_device(local_rank)
model = DDP(Net().cuda(), device_ids=[local_rank])
opt = torch.optim.AdamW(model.parameters())
if local_rank != 0:
    dist.barrier()
data = Pictures("/data/train")
if local_rank == 0:
    dist.barrier()
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=48, sampler=sampler, num_workers=6, pin_memory=True)
for epoch in range(30):
    sampler.set_epoch(epoch)
    for x, y in loader:
        opt.zero_grad(set_to_none=True)
        loss = criterion(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        loss.backward()
        opt.step()
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "last.pt")
