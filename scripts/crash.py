from __future__ import annotations
import os, sys, tempfile, shutil
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"
from collections import Counter
from pathlib import Path
from torn import corpus, faults, warm
from kb.index.build import build
from concurrent.futures import ProcessPoolExecutor
import multiprocessing, time, contextlib

def scenes(root, segments):
    def place(name, *states):
        folder = root/name/"before"; (folder/"cache").mkdir(parents=True)
        for s in states:
            build(corpus.write(root/name/"articles", s), folder/"index", encoder=corpus.ENCODER)
        if not states: corpus.write(root/name/"articles",corpus.new(20))
        return folder, root/name/"articles"
    def scene(name, before, after, *more):
        folder, articles = place(name, *before)
        corpus.write(articles, after)
        return faults.Scene(name, folder, articles, more)
    if not segments:
        yield scene("build", [corpus.old(20)], corpus.new(20))
        yield scene("first", [], corpus.new(20))
    else:
        e=[corpus.edited(10,n) for n in range(6)]
        yield scene("rewrites",[corpus.old(10)],corpus.new(10))
        yield scene("adds",e[:3],e[3])
        yield scene("joins",e[:4],e[4])
        yield scene("compacts",e[:4],e[4],"--compact")
SCENES=[]
def one(job):
    s,c,root=job
    return faults.try_case(SCENES[s],c,root)
def main():
    segments="--segments" in sys.argv
    if segments: corpus.of_segments()
    with tempfile.TemporaryDirectory(prefix="kb-crash-",dir="/dev/shm") as d:
        root=Path(d)
        SCENES[:]=scenes(root,segments)
        import kb.cli.build, kb.cli.search
        jobs=[]
        for n,s in enumerate(SCENES):
            shutil.copytree(s.before, root/"w")
            sys.argv=["kb",*s.command(root/"w").arguments]
            from kb.cli import main
            with contextlib.suppress(SystemExit): main()
            shutil.rmtree(root/"w")
            e=s.undisturbed(root)
            calls=Counter(c for c,_ in e.calls)
            print(s.name,calls,s.old,s.new,e.stdout)
            jobs+=[(n,c,root) for c in faults.cases(calls)]
        t=warm.seconds()
        with ProcessPoolExecutor(2,mp_context=multiprocessing.get_context("fork")) as pool:
            res={}
            for j,f in zip(jobs,pool.map(one,jobs,chunksize=8)):
                res.setdefault((j[0],j[1].fault),Counter())[f.seen]+=1
                for w in f.wrong: print("WRONG",SCENES[j[0]].name,j[1],w[:600])
        for k,v in res.items(): print(SCENES[k[0]].name,k[1],v)
        u=warm.seconds(); print(len(jobs),[b-a for a,b in zip(t,u)])
main()
