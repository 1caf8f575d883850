"""stub"""


def plain_table(file, trials):
    from unmask.lab.store import Store
    from unmask.lab.summary import Summary

    out = []
    with Store(file) as s:
        for t in trials:
            x = Summary.of(t, s.rows(t))
            out.append(
                f"{t.task} {t.rule} {t.window} {x.count} {100 * x.accuracy():.1f} nfe {x.mean('nfe'):.1f}"
            )
    return out
