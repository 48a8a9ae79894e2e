"""Goldens of DQN and SAC against the new engine; see _gold.py."""
import sys
sys.path.insert(0, '/work/main/tests/contracts')
import numpy as np, torch
import engine_cells as ec
from _gold import Map, block_perm, build_new, cols, diff, embed_perm, enc, old_params, put, rows
from headwise.spaces import Choice

def layer(old,p): return old[p+".weight"], old[p+".bias"]
def twin(pair):
    """(P,2,H,i,o) -> (P,2*H,i,o)"""
    return tuple(x.flatten(1,2) if x.dim()==5 else x for x in pair)
def order_of(lay): return lay._order.tolist() if lay.joint is None else [0]
def kinds(lay):
    """sorted-head places: for discrete/continuous kinds, the old place (within spec order of that kind) of each new one"""
    # new order = discrete in spec order, then continuous in spec order: same within kind
    return None

def dueling(res, net, old, pre, lay, stacked=False, N=None):
    tr=[layer(old,f"{pre}encoder.{n}") for n in enc(old,pre+"encoder.")]+[layer(old,pre+"embedding")]
    res.append((net._trunk,[twin(p) for p in tr]))
    res.append((net._value,[twin(layer(old,pre+"value"))]))
    res.append((net._advantage,[twin(layer(old,pre+"advantage"))]))
def mlp(old, pre, more):
    return [layer(old,f"{pre}encoder.{n}") for n in enc(old,pre+"encoder.")]+[layer(old,pre+m) for m in more]

def value_pairs(v, old, top, lay, settings):
    """networks of a DQN value"""
    res=[]; kind=type(v).__name__
    if lay.joint is not None: top+="inner."
    if kind in("BranchingValue","MixedValue","WeighedValue"):
        dueling(res,v.net,old,top+"net.",lay)
        if kind=="MixedValue":
            f,s=layer(old,top+"mixer.first"),layer(old,top+"mixer.second")
            res.append((v._mixer,[(torch.cat([f[0],s[0]],-1),torch.cat([f[1],s[1]],-1))]))
        if kind=="WeighedValue":
            f,s=layer(old,top+"mixer.first"),layer(old,top+"mixer.second")
            K=max(lay.sizes); S=v._state_width
            keep=list(range(S))+[S+d*K+k for d,n in enumerate(lay.sizes) for k in range(n)]
            res.append((v._mixer,[rows(f,keep),s]))
    elif kind=="PlainValue":
        res.append((v.net,mlp(old,top,["output"])))
    elif kind=="ChainValue":
        res.append((v._state,mlp(old,top+"state.",["embedding","output"])))
        p=mlp(old,top,["embedding","output"])
        F=v.leaves[0]
        p[0]=rows(p[0],chain_perm(lay,v._order,F,0))
        res.append((v._each,p))
    return res
def chain_perm(lay, order, F, C):
    """old rows: [F, C numbers, options of non-ordered heads.., ordered heads'] of the discrete part; new: in order of choice"""
    heads=[h for h in lay.spec.heads if isinstance(h,Choice)]
    col={}; at=F+C
    for d,h in enumerate(heads):
        if not h.ordered: col[d]=list(range(at,at+h.n)); at+=h.n
    for d,h in enumerate(heads):
        if h.ordered: col[d]=[at]; at+=1
    return list(range(F+C))+[c for d in order for c in col[d]]
def whole_perm(lay, F):
    spec=lay.spec; heads=list(spec.heads); col={}; at=F
    isnum=[not isinstance(h,Choice) or h.ordered for h in heads]
    for h,hd in enumerate(heads):
        if not isnum[h]: col[h]=list(range(at,at+hd.n)); at+=hd.n
    for h,hd in enumerate(heads):
        if isnum[h]: col[h]=[at]; at+=1
    return list(range(F))+[c for i in order_of(lay) for c in col[i]]

def critic_pairs(v, old, lay):
    top="critic."; kind=type(v).__name__; res=[]; F=ec.OBS; C=lay.num_continuous
    if kind in("BranchingValue","MixedValue"):
        dueling(res,v.net,old,top+"net.",lay)
        if kind=="MixedValue":
            f,s=layer(old,top+"mixer.first"),layer(old,top+"mixer.second")
            res.append((v._mixer,[(torch.cat([f[0],s[0]],-1),torch.cat([f[1],s[1]],-1))]))
    elif kind=="ActionCritic":
        p=mlp(old,top,["output"]); p[0]=rows(p[0],whole_perm(lay,F)); res.append((v._net,p))
    elif kind=="ChainValue":
        res.append((v._state,[layer(old,f"{top}state.{n}") for n in enc(old,top+"state.")]+[layer(old,top+"state_embedding"),layer(old,top+"value")]))
        p=[twin(x) for x in mlp(old,top,["embedding","advantage"])]
        p[0]=rows(p[0],chain_perm(lay,v._order,F,C)); res.append((v._each,p))
    elif kind=="ApartCritics":
        if v._discrete is not None: dueling(res,v._discrete.net,old,top+"options.",lay)
        if C:
            p=[twin(x) for x in mlp(old,top,["output"])]
            res.append((v._net,p,"apart"))
    return res
def actor_pairs(a, old, lay):
    top="soft.actor."; kind=type(a).__name__; F=ec.OBS
    if kind=="ChainActor":
        p=mlp(old,top+"stack.",["output"])
    elif kind=="FactoredPolicy":
        p=mlp(old,top,["output"])
    return [(a.net,p)]

def expand_apart(v, pairs, now):
    """old (C*2, F+1, o) to new (2*C, F+C, o); unseen rows as they are now"""
    w,b=pairs[0]; new=v.weights(now)[0][0].clone()
    n=new.shape[1]; F=ec.OBS; C=new.shape[-2]-F
    for k in range(n):
        new[:,k,:F]=w[:,k,:F]; new[:,k,F+k%C]=w[:,k,F]
    return [(new,b),*pairs[1:]]
def clean(pairs, net):
    if len(pairs)==3: return pairs[0], expand_apart(pairs[0],pairs[1],pairs[0].parameters.tensor)
    return pairs

def all_pairs(L, olds, algorithm):
    """{section: [(net, pairs)]}"""
    lay=L.layout; out={}
    if algorithm=="dqn":
        out["values"]=value_pairs(L.value,olds["values"],"online.",lay,None)
        out["target"]=value_pairs(L.slow,olds["target"],"target.",lay,None)
    else:
        out["critic.values"]=critic_pairs(L.critic,olds["critic.values"],lay)
        t={k.replace("target.","critic.",1):x for k,x in olds["target"].items()}
        out["target"]=critic_pairs(L.slow,t,lay)
        if L.actor is not None: out["actor.values"]=actor_pairs(L.actor,olds["actor.values"],lay)
    return {k:[clean(p,None) for p in v] for k,v in out.items()}

def sections(one, flat):
    out,at={},0
    for sec in one["sections"]:
        d={}
        for path,shape in sec["modules"]:
            n=int(np.prod(shape)) if shape else 1
            d[path]=torch.from_numpy(np.ascontiguousarray(flat[:,at:at+n])).view(-1,*shape); at+=n
        out[sec["name"]]=d
    return out

def alpha_perm(L, n):
    return order_of(L.layout) if n>2 and n==len(order_of(L.layout)) else list(range(n))

def off_cell(name, file, members=(0,1,2), verbose=False):
    cell, one = file.cells[name]; members=list(members)
    L=build_new(cell, tuple(ec.SEEDS[m] for m in members))
    if hasattr(L, "tell"): pass
    first=sections(one, file[one["first"]][members])
    start=all_pairs(L,first,cell.algorithm)
    init=max(float(diff(n,p).abs().max()) for v in start.values() for n,p in v)
    for v in start.values():
        for n,p in v: put(n,p)
    start=all_pairs(L,first,cell.algorithm)
    kept=dict(zip(ec.STAGES[cell.algorithm], file[f"{name}/parameters"][:,members]))
    batches=file.batches(cell,members); worst={}; acted=[]; met={}
    for k in range(ec.UPDATES):
        b=batches[k%len(batches)]
        m=L.update(b)()
        legal=None if b.legal is None else b.legal[:,:ec.SLOTS]
        acted.append(L.act(b.obs[:,:ec.SLOTS], legal).action.clone())
        stage={0:"one",ec.UPDATES-1:"eight"}.get(k)
        if not stage: continue
        now=sections(one,kept[stage]); end=all_pairs(L,now,cell.algorithm); errs={}
        for sec,v in end.items():
            num=den=0
            for (n,p),(_,p2) in zip(v,start[sec]):
                num=num+diff(n,p).square().sum(-1)
                w0=torch.cat([a.reshape(len(members),-1) for q in p for a in q],1); w1=torch.cat([a.reshape(len(members),-1) for q in p2 for a in q],1)
                den=den+(w0-w1).square().sum(-1)
            errs[sec]=float((num/den.clamp_min(1e-30)).sqrt().max())
        if cell.algorithm=="sac":
            a=now["alpha.values"]["temperatures.log_alpha"]; a0=first["alpha.values"]["temperatures.log_alpha"]
            mine=L.temperatures.log_alpha.tensor.flatten(1); perm=alpha_perm(L,a.shape[1])
            errs["alpha"]=float(((mine-a[:,perm]).norm(dim=1)/(a-a0).norm(dim=1).clamp_min(1e-30)).max())
        worst[stage]=max(errs.values()), max(errs,key=errs.get)
        gm=file[f"{name}/metrics"][0 if stage=="one" else -1][members]; at=0
        for n,w in one["metrics"]:
            g=gm[:,at:at+w]; at+=w
            if n in m:
                mine=m[n].float().reshape(len(members),-1).numpy()
                if mine.shape==g.shape: met[n]=max(met.get(n,0.0),float(np.abs(mine-g).max()/(np.abs(g).max()+1e-6)))
                else: met[n]=("shape",mine.shape,g.shape)
            else: met[n]="absent"
    ga=file[f"{name}/acted"][:,members]; mine=torch.stack(acted).numpy()
    if mine.shape!=ga.shape: print("acted shapes", mine.shape, ga.shape)
    same=float((np.abs(mine-ga)>1e-4).mean()); close=float(np.abs(mine-ga).max())
    return init,worst,same,close,met,L

if __name__=="__main__":
    import time
    alg=sys.argv[1]; pat=sys.argv[2] if len(sys.argv)>2 and sys.argv[2]!="-v" else ""
    file=ec.golden(alg); bad=0; t=time.time()
    for name in file.cells:
        if pat and pat not in name: continue
        try:
            init,worst,same,close,met,L=off_cell(name,file)
            flag="" if worst["one"][0]<1e-5 and worst["eight"][0]<1e-3 and same==0 else "  <<<<"
            off={k:v for k,v in met.items() if not isinstance(v,float) or v>1e-3}
            print(f"{name}: init {init:.1e} one {worst['one'][0]:.1e} {worst['one'][1]} eight {worst['eight'][0]:.1e} acted {same:.3f} {close:.1e}{flag}", off or "", flush=True)
            bad+=bool(flag)
        except Exception as e:
            import traceback; bad+=1
            print(name,"FAILED",repr(e)[:300])
            if "-v" in sys.argv: traceback.print_exc()
    print("bad",bad,"s",round(time.time()-t,1))
