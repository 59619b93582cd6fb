import paddle
from paddle.io import DataLoader

model = paddle.DataParallel(Net())
opt = paddle.optimizer.Momentum(parameters=model.parameters())
for x, y in DataLoader(data, batch_size=16, num_workers=2):
    loss = criterion(model(x), y)
    loss.backward()
    opt.step()
    opt.clear_grad()
