"""``torch.utils.tensorboard``: what happens in a training run, written to files that TensorBoard shows.

It writes through the package `tensorboard`, which retrograd does not bring: ``pip install tensorboard``. Images need
`pillow` besides, figures `matplotlib`.
"""

try:
    import tensorboard as _tensorboard
except ImportError as error:
    raise ImportError(
        "torch.utils.tensorboard needs the package tensorboard, which is not installed: pip install tensorboard "
        "(or retrograd[tensorboard], which brings pillow for images too)"
    ) from error

if not hasattr(_tensorboard, "__version__"):  # a directory of logs that is called so, found first
    raise ImportError(
        f"TensorBoard logging requires TensorBoard version 1.15 or above, but `import tensorboard` found "
        f"{getattr(_tensorboard, '__path__', _tensorboard)}, which is not that package"
    )

from tensorboard.summary.writer.record_writer import RecordWriter

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
