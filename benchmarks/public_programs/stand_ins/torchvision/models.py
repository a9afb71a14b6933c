"""Networks that programs take from torchvision; weights are never downloaded, but drawn."""

from __future__ import annotations

from torch import nn


class _Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.downsample = None
        if stride != 1 or before != after:
            self.downsample = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    """Of the shape of resnet18."""

    def __init__(self, num_classes=1000, width=64):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        for index in range(4):
            before = width * 2 ** max(index - 1, 0)
            after = width * 2**index
            layer = nn.Sequential(_Block(before, after, 1 if index == 0 else 2), _Block(after, after, 1))
            setattr(self, f"layer{index + 1}", layer)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(width * 8, num_classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def resnet18(pretrained=False, weights=None, **options):
    return ResNet(**options)


def resnet34(pretrained=False, weights=None, **options):
    """And four times narrower, as those below."""
    return ResNet(width=16, **options)


resnet50 = resnet101 = resnet152 = resnet34


class VGG(nn.Module):
    """Of the shape of vgg16 or vgg19, eight times narrower."""

    def __init__(self, plan):
        super().__init__()
        layers: list[nn.Module] = []
        before = 3
        for width in plan:
            if width == 0:
                layers.append(nn.MaxPool2d(2, 2))
            else:
                layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU(inplace=True)]
                before = width
        self.features = nn.Sequential(*layers)

    def forward(self, x):
        return self.features(x)


def vgg16(pretrained=False, weights=None):
    return VGG([8, 8, 0, 16, 16, 0, 32, 32, 32, 0, 64, 64, 64, 0, 64, 64, 64, 0])


def vgg19(pretrained=False, weights=None):
    return VGG([8, 8, 0, 16, 16, 0, 32, 32, 32, 32, 0, 64, 64, 64, 64, 0, 64, 64, 64, 64, 0])


class _Weights:
    DEFAULT = None


class VGG16_Weights(_Weights):
    pass


class VGG19_Weights(_Weights):
    pass


class ResNet18_Weights(_Weights):
    pass
