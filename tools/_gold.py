"""Compare the new engine with goldens."""
import sys, dataclasses, json, time
sys.path.insert(0,'/work/main/tests/contracts')
import numpy as np, torch
import headwise
from headwise.population import Keys
import engine_cells as ec
from headwise.algorithms import algorithms
from headwise.algorithms.base import Task
torch.set_num_threads(1)

def old_params(one, flat):
    """{path: tensor(P,*shape)} of a parameter matrix (P, columns)."""
    out, at = {}, 0
    for sec in one["sections"]:
        for path, shape in sec["modules"]:
            n = int(np.prod(shape)) if shape else 1
            key = path if sec["name"]!="target" else path
            out[key]= torch.from_numpy(np.ascontiguousarray(flat[:, at:at+n])).view(-1,*shape); at += n
    return out

class Map:
    """Old tensors as the new networks have them."""
    def __init__(self, layout, features): 
        self.l=layout; self.F=features
        spec=layout.spec
        self.perm=layout._order.tolist()   # learner head i is spec head perm[i]
    def layers(self, old, prefix, names):
        return [(old[f"{prefix}{n}.weight"], old[f"{prefix}{n}.bias"]) for n in names]

def enc(old, prefix): 
    i=0; names=[]
    while f"{prefix}layers.{i}.weight" in old: names.append(f"layers.{i}"); i+=1
    return names
def put(net, pairs, copy_perm=None):
    flat=net.parameters.tensor
    for (w,b),(ow,ob) in zip(net.weights(flat), pairs, strict=True):
        if ow.dim()==3: ow,ob=ow.unsqueeze(1),ob.unsqueeze(1)
        ow, ob = ow.flatten(1,-3), ob.flatten(1,-3)
        if copy_perm is not None: ow,ob=ow[:,copy_perm],ob[:,copy_perm]
        w.copy_(ow.view(w.shape)); b.copy_(ob.view(b.shape))
def diff(net, pairs, copy_perm=None):
    """max abs difference and max abs way"""
    out=[]
    for (w,b),(ow,ob) in zip(net.weights(net.parameters.tensor), pairs, strict=True):
        if ow.dim()==3: ow,ob=ow.unsqueeze(1),ob.unsqueeze(1)
        ow, ob = ow.flatten(1,-3), ob.flatten(1,-3)
        if copy_perm is not None: ow,ob=ow[:,copy_perm],ob[:,copy_perm]
        out.append((w-ow.view(w.shape)).flatten(1)); out.append((b-ob.view(b.shape)).flatten(1))
    return torch.cat(out,1)
def cols(pair, perm): return pair[0][...,perm], pair[1][...,perm]
def rows(pair, perm): return pair[0][...,perm,:], pair[1]
def block_perm(sizes, order):
    st=np.cumsum([0,*sizes]); return [c for h in order for c in range(st[h],st[h]+sizes[h])]
def embed_perm(layout, order, F, which="all", extra=0):
    """new input row -> old input row, for [features, extra numbers.., embedding]"""
    spec=layout.spec
    from headwise.spaces import Choice
    heads=list(spec.heads)
    isnum=[not isinstance(h,Choice) or h.ordered for h in heads]
    col={}; at=0
    for h,hd in enumerate(heads):
        if not isnum[h]:
            col[h]=list(range(at,at+hd.n)); at+=hd.n
    for h,hd in enumerate(heads):
        if isnum[h]: col[h]=[at]; at+=1
    new=[c for i in order for c in col[layout._order.tolist()[i]]]
    return list(range(F+extra))+[F+extra+c for c in new]

def ppo_pairs(learner, old):
    """[(net, pairs)] for every network of the new PPO learner, from old parameters."""
    lay=learner.layout; kind=type(learner.actor).__name__; res=[]; F=learner.features
    perm=lay._order.tolist() if lay.joint is None else [0]
    net=learner.actor.net
    if "actor.stack.output.weight" in old:
        names=enc(old,"actor.stack.encoder."); pairs=[(old[f"actor.stack.encoder.{n}.weight"],old[f"actor.stack.encoder.{n}.bias"]) for n in names]
        if kind=="ChainPolicy":
            pairs[0]=rows(pairs[0], embed_perm(lay, learner.actor._order, F))
        pairs.append((old["actor.stack.output.weight"],old["actor.stack.output.bias"]))
        res.append((net,pairs,perm)); free=old.get("actor.stack.spread.free")
    else:
        pre="actor.inner." if "actor.inner.output.weight" in old else "actor."
        names=enc(old,pre+"encoder."); pairs=[(old[f"{pre}encoder.{n}.weight"],old[f"{pre}encoder.{n}.bias"]) for n in names]
        pairs.append((old[pre+"output.weight"],old[pre+"output.bias"])); res.append((net,pairs,None)); free=old.get(pre+"spread.free")
    c=learner.critic
    if "critic.net.value.weight" in old:
        pre="critic.net."
        names=enc(old,pre+"encoder."); pairs=[(old[f"{pre}encoder.{n}.weight"],old[f"{pre}encoder.{n}.bias"]) for n in names]
        pairs.append((old[pre+"embedding.weight"],old[pre+"embedding.bias"]))
        res.append((c.net._trunk,pairs,None)); res.append((c.net._value,[(old[pre+"value.weight"],old[pre+"value.bias"])],None))
        # old: heads in spec order, options by head
        spec=lay.spec; sizes=[n or c.num_bins for n in spec.cardinalities]
        bp=block_perm(sizes, perm)
        res.append((c.net._advantage,[cols((old[pre+"advantage.weight"],old[pre+"advantage.bias"]),bp)],None))
        if "critic.mixer.first.weight" in old:
            E=old["critic.mixer.second.weight"].shape[-1]; H=len(perm)
            bp=[c for h in perm for c in range(h*E,h*E+E)]
            f=cols((old["critic.mixer.first.weight"],old["critic.mixer.first.bias"]),bp); s=(old["critic.mixer.second.weight"],old["critic.mixer.second.bias"])
            res.append((c._mixer,[(torch.cat([f[0],s[0]],-1),torch.cat([f[1],s[1]],-1))],None))
    else:
        names=enc(old,"critic.encoder."); pairs=[(old[f"critic.encoder.{n}.weight"],old[f"critic.encoder.{n}.bias"]) for n in names]
        if "critic.embedding.weight" in old: pairs.append((old["critic.embedding.weight"],old["critic.embedding.bias"]))
        pairs.append((old["critic.output.weight"],old["critic.output.bias"]))
        res.append((c._net,pairs,perm if pairs[-1][0].dim()==4 else None))
    return res, free

def build_new(cell, seeds):
    small = {"hidden": (10, 6), "lr": 2e-3} | ec.SMALL[cell.algorithm]
    st = {k: tuple(v) if isinstance(v, list) else v for k, v in cell.settings.items()}
    config = algorithms.get(cell.algorithm)(**small | st)
    own = ec.SMALL_FACTORIZATION.get(cell.factorization, {}) | cell.factorization_settings
    own = {k: tuple(v) if isinstance(v, list) else v for k, v in own.items()}
    from headwise.factorizations import factorizations as F2
    from headwise.algorithms.ppo.learner import PPOLearner
    kinds={"ppo":PPOLearner}
    if cell.algorithm=="dqn":
        from headwise.algorithms.dqn.learner import DQNLearner; kinds["dqn"]=DQNLearner
    if cell.algorithm=="sac":
        from headwise.algorithms.sac.learner import SACLearner; kinds["sac"]=SACLearner
    task=Task(spec=ec.SPECS[cell.spec], obs_size=ec.OBS, num_slots=ec.SLOTS,
        total_steps=10*ec.SLOTS*ec.STEPS if cell.algorithm=="ppo" else 2*ec.UPDATES*ec.SLOTS,
        factorization=F2.get(cell.factorization)(**own), keys=Keys(seeds))
    return kinds[cell.algorithm](config, task)

def conv_extra(learner, batch):
    lay=learner.layout; x=dict(batch.extra)
    if lay.joint is not None: 
        x["raw"]=lay.joint.to_joint(x["raw"])
    else:
        x["raw"]=lay.to_learner(x["raw"]); x["log_prob"]=lay.to_learner(x["log_prob"]) if x["log_prob"].shape[-1]>1 else x["log_prob"]
    return batch._replace(extra=x)

def ppo_cell(name, file, members=(0,1,2), verbose=False, recorded=True):
    cell, one = file.cells[name]; members=list(members)
    seeds=tuple(ec.SEEDS[m] for m in members)
    L=build_new(cell, seeds)
    first=file[one["first"]][members]
    res,free=ppo_pairs(L, old_params(one,first))
    # initial values equal?
    init=max(float(diff(n,p,c).abs().max()) for n,p,c in res)
    for n,p,c in res: put(n,p,c)
    if free is not None: L.actor.std.tensor.copy_(free.view(L.actor.std.tensor.shape))
    batches=[conv_extra(L,b) for b in file.batches(cell,members)]
    kept=dict(zip(ec.STAGES["ppo"], file[f"{name}/parameters"][:,members]))
    worst={}; acted=[]
    for k in range(ec.UPDATES):
        m=L.update(batches[k%len(batches)])()
        b=batches[k%len(batches)]
        legal=None if b.legal is None else b.legal[:,0]
        acted.append(L.act(b.obs[:,0], legal).action.clone())
        stage={0:"one",ec.UPDATES-1:"eight"}.get(k)
        if stage:
            old=old_params(one,kept[stage]); r,f=ppo_pairs(L,old)
            start=ppo_pairs(L,old_params(one,first))[0]
            num=den=mx=0
            for (n,p,c),(n2,p2,c2) in zip(r,start):
                d=diff(n,p,c); num=num+d.square().sum(-1)
                w0=torch.cat([ (a.flatten(1)) for q in p for a in q],1); w1=torch.cat([a.flatten(1) for q in p2 for a in q],1)
                den=den+(w0-w1).square().sum(-1)
            if f is not None:
                num=num+(L.actor.std.tensor.flatten(1)-f.flatten(1)).square().sum(-1); den=den+(f-free).flatten(1).square().sum(-1)
            kl=0.
            if "kl_coef" in old: kl=float((L.kl_coef.tensor.flatten()/old["kl_coef"].flatten()-1).abs().max())
            worst[stage]=float((num/den).sqrt().max()),kl
    ga=file[f"{name}/acted"][:,members]
    same=float((torch.stack(acted).numpy()!=ga).mean()) ; close=float(np.abs(torch.stack(acted).numpy()-ga).max())
    met={}
    # metrics of the last update against golden
    gm=file[f"{name}/metrics"][-1][members]; at=0
    for n,w in one["metrics"]:
        g=gm[:,at:at+w]; at+=w
        if n in m:
            mine=m[n].float().reshape(len(members),-1).numpy()
            if mine.shape==g.shape: met[n]=float(np.abs(mine-g).max()/(np.abs(g).max()+1e-6))
            else: met[n]="shape",mine.shape,g.shape
        else: met[n]="absent"
    return init,worst,same,close,met,L

if __name__=="__main__":
    file=ec.golden(sys.argv[1]); pat=sys.argv[2] if len(sys.argv)>2 else ""
    bad=0; t=time.time()
    for name in file.cells:
        if pat and pat not in name: continue
        try:
            if sys.argv[1]=="ppo": init,worst,same,close,met,L=ppo_cell(name,file)
            else:
                from _gold_off import off_cell; init,worst,same,close,met,L=off_cell(name,file)
            flag="" if worst["one"][0]<1e-4 and worst["eight"][0]<2e-3 and init<1e-5 else "  <<<<"
            off={k:v for k,v in met.items() if not isinstance(v,float) or v>1e-2}
            print(f"{name}: init {init:.1e} one {worst['one'][0]:.1e} eight {worst['eight'][0]:.1e} kl {worst['eight'][1]:.0e} acted {same:.3f} {close:.1e}{flag}", off if (flag or "-v" in sys.argv) else "", flush=True)
            bad+=bool(flag)
        except Exception as e:
            import traceback; bad+=1
            print(name,"FAILED",repr(e)[:300]); 
            if "-v" in sys.argv: traceback.print_exc()
    print("bad",bad, "s", time.time()-t)
