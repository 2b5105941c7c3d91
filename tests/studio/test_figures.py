"""What the page of a run says about its figures, and how it draws them."""
import numpy as np

from caffe.runs import Run, Summary
from caffe.studio import charts
from caffe.studio.pages.models import newest_figure
from caffe.studio.pages.run import best_of, shares_of


def test_best_figures_of_tests(tmp_path):
    lines = ['{"event": "train", "time": 1, "iteration": 5, "loss": 0.1}']
    lines += [f'{{"event": "test", "time": 2, "iteration": {step}, "loss": {loss}, "outputs": {{"accuracy": {accuracy}}}}}'
              for step, loss, accuracy in ((10, '"NaN"', '"NaN"'), (20, 0.5, 0.75), (30, 0.25, 0.75), (40, 0.375, 0.5))]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    run = Run(tmp_path)
    run.refresh()
    assert sorted(best_of(run.series)[len("Best: "):].split(", ")) == ["test/accuracy 0.75 after iteration 20", "test/loss 0.25 after iteration 30"]
    assert best_of({}) == ""


def test_the_newest_figure_of_a_model():
    """Not that of a trial of a sweep in it, nor of a run without a test."""
    def summary(folder, **figures):
        return Summary(folder, "1", "finished", {}, figures={f"test/{name}": value for name, value in figures.items()})

    summaries = [summary("/w/pets/sweep/0001/run", accuracy=0.1), summary("/w/pets/runs/3"), summary("/w/pets_2/runs/1", accuracy=0.2),
                 summary("/w/pets/runs/2", aux_loss=0.1, loss=0.2, accuracy=0.92666, top5=1.0), summary("/w/pets/runs/1", accuracy=0.3),
                 summary("/w/boxes/runs/1", detection_eval=0.5, aux=1.0), summary("/w/line/runs/1", loss=0.25)]
    assert [newest_figure(summaries, f"/w/{name}") for name in ("pets", "pets_2", "boxes", "line", "none")] == [
        "accuracy 0.927", "accuracy 0.2", "detection_eval 0.5", "loss 0.25", ""]


def test_layers_are_shaded_by_one_measure():
    """Not all layers have a time; the others do not count by their operations, which are much larger numbers."""
    layers = [{"name": name, "milliseconds": time, "flops": count} for name, time, count in (("a", 8.0, 10), ("b", 2.0, 20), ("c", None, 10 ** 9))]
    assert shares_of(layers) == ({"a": 1, "b": 0.25, "c": 0}, True)
    assert shares_of([{**layer, "milliseconds": None} for layer in layers[:2]]) == ({"a": 0.5, "b": 1}, False)
    assert shares_of([]) == ({}, False)


def test_titles_of_charts_do_not_touch_their_axes():
    option = charts.options("loss", [("a", np.arange(3), np.arange(3.0))])
    padding, label = 5, 12  # of ECharts, in pixels
    assert option["title"]["top"] + padding + 1.2 * option["title"]["textStyle"]["fontSize"] < option["grid"]["top"] - label / 2
