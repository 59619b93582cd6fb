import torch
from torch.utils.data import DataLoader

device = torch.device("cuda")
model = torch.nn.DataParallel(Net()).to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=8, pin_memory=True)
for epoch in range(10):
    running = 0.0
    for i, (x, y) in enumerate(train_loader):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        opt.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
        running += loss.detach()
        if i % 100 == 0:
            print(epoch, i, running.item())
