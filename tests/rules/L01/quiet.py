import paddle
from paddle.io import DataLoader, DistributedBatchSampler

paddle.distributed.init_parallel_env()
model = paddle.DataParallel(Net())
opt = paddle.optimizer.AdamW(parameters=model.parameters())
loader = DataLoader(data, batch_sampler=DistributedBatchSampler(data, 32, shuffle=True), num_workers=4)
for x, y in loader:
    loss = criterion(model(x), y)
    loss.backward()
    opt.step()
    opt.clear_grad()
