(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Dot products in floating point, in any order of summation, with or without FMA (bound.dot, bound.linear). A
   computation is a tree: its leaves are products, rounded or not, and its nodes are rounded sums and fused
   multiply-adds. Sequential, pairwise, blocked and vectorised sums are all trees. Assumed of a rounding:
   |fl x - x| <= u |x| + η; section Formats proves this of round to nearest. *)

From Sinkproof Require Import Sums Nodes.
From Coq Require Import Reals List Permutation ZArith Arith Lia Lra.
From Flocq Require Import Core Relative Plus_error.
Import ListNotations.
Open Scope R_scope.

Inductive tree :=
  | Exact (a b : R)            (* a b, exact: two short significands, or b = 1 *)
  | Prod (a b : R)             (* fl(a b) *)
  | Add (l r : tree)           (* fl(l + r) *)
  | Fma (a b : R) (t : tree).  (* fl(a b + t) *)

Fixpoint eval (fl : R -> R) (t : tree) : R :=
  match t with
  | Exact a b => a * b
  | Prod a b => fl (a * b)
  | Add l r => fl (eval fl l + eval fl r)
  | Fma a b t => fl (a * b + eval fl t)
  end.

(* terms: the products that a tree adds. depth: the number of roundings on the longest path from a term to the
   result. *)
Fixpoint terms (t : tree) : list (R * R) :=
  match t with
  | Exact a b | Prod a b => [(a, b)]
  | Add l r => terms l ++ terms r
  | Fma a b t => (a, b) :: terms t
  end.
Fixpoint depth (t : tree) : nat :=
  match t with
  | Exact _ _ => 0
  | Prod _ _ => 1
  | Add l r => S (max (depth l) (depth r))
  | Fma _ _ t => S (depth t)
  end.
(* 1 if some product is rounded on its own, else 0. *)
Fixpoint products_round (t : tree) : nat :=
  match t with
  | Exact _ _ => 0
  | Prod _ _ => 1
  | Add l r => max (products_round l) (products_round r)
  | Fma _ _ t => products_round t
  end.
(* The number of all roundings of a tree; each may underflow. *)
Fixpoint roundings (t : tree) : nat :=
  match t with
  | Exact _ _ => 0
  | Prod _ _ => 1
  | Add l r => S (roundings l + roundings r)
  | Fma _ _ t => S (roundings t)
  end.

Definition dot (l : list (R * R)) : R := ∑ p ∈ l, fst p * snd p.
Definition absdot (l : list (R * R)) : R := ∑ p ∈ l, Rabs (fst p * snd p).

Lemma absdot_nonneg l : 0 <= absdot l.
Proof. apply Sum_nonneg. intros. apply Rabs_pos. Qed.

Lemma dot_le_absdot l : Rabs (dot l) <= absdot l.
Proof. apply (Sum_abs l (fun p => fst p * snd p)). Qed.

(* The longest path has at most n - 1 additions, and the product's own rounding. *)
Lemma depth_le t : (S (depth t) <= length (terms t) + products_round t)%nat.
Proof.
  assert (N : forall t, (1 <= length (terms t))%nat)
    by (clear; induction t; simpl; rewrite ?app_length; lia).
  induction t as [| | l IHl r IHr |]; simpl; rewrite ?app_length; try lia.
  pose proof (N l). pose proof (N r). lia.
Qed.

Lemma products_round_le t : (products_round t <= 1)%nat.
Proof. induction t; simpl; lia. Qed.

Definition gamma (n : nat) (u : R) : R := INR n * u / (1 - INR n * u).

Lemma pow_gamma u n : 0 <= u -> INR n * u < 1 -> (1 + u) ^ n - 1 <= gamma n u.
Proof.
  intros Hu Hn.
  assert (B : (1 + u) ^ n * (1 - INR n * u) <= 1).
  { clear Hn. induction n as [|n IH]; [simpl; lra|]. rewrite S_INR.
    pose proof (pow_lt (1 + u) n ltac:(lra)) as P. pose proof (pos_INR n).
    replace ((1 + u) ^ S n * (1 - (INR n + 1) * u))
      with ((1 + u) ^ n * (1 - INR n * u) - (1 + u) ^ n * ((INR n + 1) * (u * u))) by (simpl; ring).
    assert (0 <= (1 + u) ^ n * ((INR n + 1) * (u * u))) by (repeat apply Rmult_le_pos; lra). lra. }
  unfold gamma. apply Rmult_le_reg_r with (1 - INR n * u); [lra|].
  replace (INR n * u / (1 - INR n * u) * (1 - INR n * u)) with (INR n * u) by (field; lra). lra.
Qed.

Lemma gamma_mono u m n : 0 <= u -> (m <= n)%nat -> INR n * u < 1 -> gamma m u <= gamma n u.
Proof.
  intros Hu Hm Hn. apply le_INR in Hm. pose proof (pos_INR m).
  assert (INR m * u <= INR n * u) by (apply Rmult_le_compat_r; lra).
  assert (0 <= INR m * u) by (apply Rmult_le_pos; lra).
  unfold gamma, Rdiv. apply Rmult_le_compat; try lra;
    [apply Rlt_le, Rinv_0_lt_compat; lra | apply Rinv_le_contravar; lra].
Qed.

Section Model.
  Variable fl : R -> R.
  Variables u η : R. (* relative error of a rounding, and the absolute one of an underflow *)
  Hypothesis u_nonneg : 0 <= u.
  Hypothesis η_nonneg : 0 <= η.
  Hypothesis fl_error : forall x, Rabs (fl x - x) <= u * Rabs x + η.

  (* One rounding of a sum whose parts have errors: the errors grow by a factor 1 + u. *)
  Lemma round_step (x y X E : R) :
    Rabs y <= X -> Rabs (x - y) <= E -> Rabs (fl x - y) <= (1 + u) * E + u * X + η.
  Proof.
    intros Hy Hx. pose proof (fl_error x) as F.
    assert (A : Rabs x <= X + E).
    { replace x with (y + (x - y)) by ring. pose proof (Rabs_triang y (x - y)). lra. }
    replace (fl x - y) with ((fl x - x) + (x - y)) by ring.
    pose proof (Rabs_triang (fl x - x) (x - y)).
    assert (u * Rabs x <= u * (X + E)) by (apply Rmult_le_compat_l; assumption). lra.
  Qed.

  Lemma tree_error t :
    Rabs (eval fl t - dot (terms t)) <=
    ((1 + u) ^ depth t - 1) * absdot (terms t) + INR (roundings t) * (1 + u) ^ depth t * η.
  Proof.
    assert (P1 : forall n, 1 <= (1 + u) ^ n) by (intros; apply pow_R1_Rle; lra).
    induction t as [a b | a b | l IHl r IHr | a b t IH];
      cbn [eval terms depth roundings]; unfold dot, absdot in *; rewrite ?Sum_app;
      cbn [Sum fst snd]; rewrite ?Rplus_0_r.
    - simpl. rewrite Rminus_diag_eq, Rabs_R0 by reflexivity. lra.
    - pose proof (fl_error (a * b)). simpl. pose proof (Rabs_pos (a * b)). nra.
    - fold (dot (terms l)) (dot (terms r)) (absdot (terms l)) (absdot (terms r)) in *.
      set (D := max (depth l) (depth r)).
      assert (Hl : (1 + u) ^ depth l <= (1 + u) ^ D) by (apply Rle_pow; [lra | lia]).
      assert (Hr : (1 + u) ^ depth r <= (1 + u) ^ D) by (apply Rle_pow; [lra | lia]).
      pose proof (absdot_nonneg (terms l)). pose proof (absdot_nonneg (terms r)).
      pose proof (pos_INR (roundings l)). pose proof (pos_INR (roundings r)).
      pose proof (dot_le_absdot (terms l)). pose proof (dot_le_absdot (terms r)).
      set (E := ((1 + u) ^ D - 1) * (absdot (terms l) + absdot (terms r))
                + (INR (roundings l) + INR (roundings r)) * (1 + u) ^ D * η).
      eapply Rle_trans; [apply (round_step _ _ (absdot (terms l) + absdot (terms r)) E) |].
      + pose proof (Rabs_triang (dot (terms l)) (dot (terms r))). lra.
      + replace (_ - _) with ((eval fl l - dot (terms l)) + (eval fl r - dot (terms r))) by ring.
        pose proof (Rabs_triang (eval fl l - dot (terms l)) (eval fl r - dot (terms r))).
        assert (G : forall A R p, 0 <= A -> 0 <= R -> p <= (1 + u) ^ D ->
                    (p - 1) * A + R * p * η <= ((1 + u) ^ D - 1) * A + R * (1 + u) ^ D * η).
        { intros A R p HA HR Hp. apply Rplus_le_compat; [apply Rmult_le_compat_r; lra|].
          apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_l; lra. }
        pose proof (G (absdot (terms l)) (INR (roundings l)) _ ltac:(lra) ltac:(lra) Hl).
        pose proof (G (absdot (terms r)) (INR (roundings r)) _ ltac:(lra) ltac:(lra) Hr).
        unfold E. lra.
      + rewrite S_INR, plus_INR. unfold E. cbn [pow]. pose proof (P1 D).
        assert (η <= (1 + u) * (1 + u) ^ D * η) by (rewrite <- (Rmult_1_l η) at 1; apply Rmult_le_compat_r; nra).
        lra.
    - fold (dot (terms t)) (absdot (terms t)) in *.
      pose proof (absdot_nonneg (terms t)). pose proof (pos_INR (roundings t)).
      pose proof (dot_le_absdot (terms t)). pose proof (Rabs_pos (a * b)).
      eapply Rle_trans; [eapply (round_step _ _ (Rabs (a * b) + absdot (terms t))) |].
      + pose proof (Rabs_triang (a * b) (dot (terms t))). lra.
      + replace (_ - _) with (eval fl t - dot (terms t)) by ring. exact IH.
      + rewrite S_INR. cbn [pow]. pose proof (P1 (depth t)).
        assert (η <= (1 + u) * (1 + u) ^ depth t * η)
          by (rewrite <- (Rmult_1_l η) at 1; apply Rmult_le_compat_r; nra).
        assert (0 <= ((1 + u) * (1 + u) ^ depth t - (1 + u)) * Rabs (a * b))
          by (apply Rmult_le_pos; nra).
        lra.
  Qed.
End Model.

(* The roundings of IEEE formats: to nearest, with any rule for ties. FLX has unbounded exponents. FLT has
   subnormals, and underflow adds at most half the smallest subnormal. *)
Section Formats.
  Variables (emin prec : Z) (choice : Z -> bool).
  Context {prec_gt_0 : Prec_gt_0 prec}.

  Definition unit_roundoff : R := / 2 * bpow radix2 (- prec + 1).
  Definition half_smallest : R := / 2 * bpow radix2 emin.
  Definition nearest_FLX : R -> R := round radix2 (FLX_exp prec) (Znearest choice).
  Definition nearest_FLT : R -> R := round radix2 (FLT_exp emin prec) (Znearest choice).

  Lemma unit_roundoff_nonneg : 0 <= unit_roundoff.
  Proof. unfold unit_roundoff. pose proof (bpow_ge_0 radix2 (- prec + 1)). lra. Qed.

  Lemma half_smallest_nonneg : 0 <= half_smallest.
  Proof. unfold half_smallest. pose proof (bpow_ge_0 radix2 emin). lra. Qed.

  Lemma nearest_FLX_error x : Rabs (nearest_FLX x - x) <= unit_roundoff * Rabs x.
  Proof. apply relative_error_N_FLX. exact prec_gt_0. Qed.

  Lemma nearest_FLT_error x :
    Rabs (nearest_FLT x - x) <= unit_roundoff * Rabs x + half_smallest.
  Proof.
    destruct (error_N_FLT radix2 emin prec prec_gt_0 choice x) as (e & h & He & Hh & _ & E).
    unfold nearest_FLT. rewrite E. replace (x * (1 + e) + h - x) with (e * x + h) by ring.
    pose proof (Rabs_triang (e * x) h). rewrite Rabs_mult in H.
    pose proof (Rmult_le_compat_r (Rabs x) _ _ (Rabs_pos x) He).
    unfold unit_roundoff, half_smallest. lra.
  Qed.

  Lemma nearest_FLT_sum x y : generic_format radix2 (FLT_exp emin prec) x ->
    generic_format radix2 (FLT_exp emin prec) y ->
    Rabs (nearest_FLT (x + y) - (x + y)) <= unit_roundoff * Rabs (x + y).
  Proof.
    intros Fx Fy. destruct (FLT_plus_error_N_ex radix2 emin prec choice x y Fx Fy) as (e & He & E).
    unfold nearest_FLT. rewrite E. replace ((x + y) * (1 + e) - (x + y)) with (e * (x + y)) by ring.
    rewrite Rabs_mult. apply Rmult_le_compat_r; [apply Rabs_pos|].
    eapply Rle_trans; [exact He | apply u_rod1pu_ro_le_u_ro].
  Qed.
End Formats.

Lemma dot_perm l l' : Permutation l l' -> dot l = dot l'.
Proof. apply Sum_perm. Qed.

Lemma absdot_perm l l' : Permutation l l' -> absdot l = absdot l'.
Proof. apply Sum_perm. Qed.

(* A tree with one rounding is a sum of Nodes.v, whose operations have their own errors. A product may
   underflow, and a sum with an unrounded product may; a sum of two floats never does. *)
Definition unrounded (t : tree) : bool := match t with Exact _ _ => true | _ => false end.
Definition sum_underflows (l r : tree) : bool := unrounded l || unrounded r.

Fixpoint underflows (t : tree) : nat :=
  match t with
  | Exact _ _ => 0
  | Prod _ _ => 1
  | Add l r => underflows l + underflows r + (if sum_underflows l r then 1 else 0)
  | Fma _ _ t => S (underflows t)
  end.

Lemma underflows_le t : (underflows t <= length (terms t))%nat.
Proof.
  induction t as [| | l IHl r IHr |]; simpl; rewrite ?app_length; try lia.
  unfold sum_underflows. destruct l, r; simpl in *; lia.
Qed.

Fixpoint as_nodes (fl : R -> R) (u η : R) (t : tree) : nodes :=
  let op η e := Node u η (fl (value e) - value e) e in
  match t with
  | Exact a b => Leaf a b
  | Prod a b => op η (Leaf a b)
  | Add l r => op (if sum_underflows l r then η else 0) (Join (as_nodes fl u η l) (as_nodes fl u η r))
  | Fma a b t => op η (Join (Leaf a b) (as_nodes fl u η t))
  end.

Section AsNodes.
  Variables (fl : R -> R) (u η : R) (float : R -> Prop).
  Hypothesis Hu : 0 <= u.
  Hypothesis Hη : 0 <= η.
  Hypothesis Hfl : forall x, Rabs (fl x - x) <= u * Rabs x + η.
  Hypothesis fl_float : forall x, float (fl x).
  Hypothesis sums : forall x y, float x -> float y -> Rabs (fl (x + y) - (x + y)) <= u * Rabs (x + y).

  Lemma eval_float t : unrounded t = false -> float (eval fl t).
  Proof. destruct t; simpl; intros H; [discriminate | apply fl_float ..]. Qed.

  Lemma as_nodes_honest t : let e := as_nodes fl u η t in
    honest e /\ value e = eval fl t /\ products e = terms t /\ growth e <= (1 + u) ^ depth t /\
    underflow e <= INR (underflows t) * (1 + u) ^ depth t * η.
  Proof.
    assert (Step : forall η e, honest e -> 0 <= η -> Rabs (fl (value e) - value e) <= u * Rabs (value e) + η ->
                   honest (Node u η (fl (value e) - value e) e)).
    { intros h e He Hh H. cbn [honest]. repeat split; try assumption.
      pose proof (Rmult_le_compat_l u _ _ Hu (value_le_size e)). lra. }
    assert (P1 : forall n, 1 <= (1 + u) ^ n) by (intros; apply pow_R1_Rle; lra).
    assert (More : forall k m n, (m <= n)%nat -> INR k * (1 + u) ^ m * η <= INR k * (1 + u) ^ n * η).
    { intros k m n L. apply Rmult_le_compat_r; [exact Hη|]. apply Rmult_le_compat_l; [apply pos_INR|].
      apply Rle_pow; [lra | exact L]. }
    induction t as [a b | a b | l (Hl & Vl & Tl & Gl & Ul) r (Hr & Vr & Tr & Gr & Ur)
                   | a b t (H & V & T & G & U)]; cbv zeta; cbn [as_nodes eval terms depth underflows].
    - repeat split; simpl; lra.
    - split; [apply Step; [exact I | exact Hη | apply Hfl]|]. repeat split; simpl; try lra. nra.
    - set (h := if sum_underflows l r then η else 0).
      assert (Hh : 0 <= h) by (unfold h; destruct (sum_underflows l r); lra).
      split; [apply Step; [split; assumption | exact Hh |]|].
      + cbn [value]. rewrite Vl, Vr. unfold h, sum_underflows.
        destruct (unrounded l) eqn:El; [apply Hfl|]. destruct (unrounded r) eqn:Er; [apply Hfl|].
        cbn [orb]. rewrite Rplus_0_r. apply sums; apply eval_float; assumption.
      + cbn [value products growth underflow pow]. rewrite Vl, Vr, Tl, Tr. set (D := max (depth l) (depth r)).
        repeat split; [ring | |].
        * apply Rmult_le_compat_l; [lra|]. apply Rmax_lub.
          -- eapply Rle_trans; [exact Gl | apply Rle_pow; [lra | unfold D; lia]].
          -- eapply Rle_trans; [exact Gr | apply Rle_pow; [lra | unfold D; lia]].
        * pose proof (More (underflows l) (depth l) D ltac:(unfold D; lia)).
          pose proof (More (underflows r) (depth r) D ltac:(unfold D; lia)).
          rewrite !plus_INR.
          assert (h <= INR (if sum_underflows l r then 1 else 0) * ((1 + u) * (1 + u) ^ D) * η).
          { unfold h. destruct (sum_underflows l r); simpl INR; [|lra]. pose proof (Rmult_le_compat_r η _ _ Hη (P1 D)); pose proof (Rmult_le_compat_l u _ _ Hu (Rmult_le_compat_r η _ _ Hη (P1 D))); pose proof (Rmult_le_pos _ _ Hu Hη); lra. }
          apply Rle_trans with ((1 + u) * (INR (underflows l) * (1 + u) ^ D * η
            + INR (underflows r) * (1 + u) ^ D * η) + h); [|lra].
          apply Rplus_le_compat_r, Rmult_le_compat_l; lra.
    - split; [apply Step; [split; [exact I | assumption] | exact Hη | apply Hfl]|].
      cbn [value products growth underflow pow]. rewrite V, T. repeat split; [ring | |].
      + apply Rmult_le_compat_l; [lra|]. apply Rmax_lub; [apply P1 | exact G].
      + rewrite S_INR, Rplus_0_l. pose proof (Rmult_le_compat_l (1 + u) _ _ ltac:(lra) U).
        pose proof (Rmult_le_compat_r η _ _ Hη (P1 (S (depth t)))). cbn [pow] in *. lra.
  Qed.
End AsNodes.

(* Any tree over the terms of l, in any order, under any rounding with relative error u; in particular round
   to nearest in any precision. *)
(*> bound.dot *)
Theorem bound_dot (fl : R -> R) (u : R) (t : tree) (l : list (R * R)) :
  0 <= u -> (forall x, Rabs (fl x - x) <= u * Rabs x) ->
  Permutation (terms t) l -> let n := length l in INR n * u < 1 ->
  Rabs (eval fl t - ∑ p ∈ l, fst p * snd p) <= gamma n u * ∑ p ∈ l, Rabs (fst p * snd p).
Proof.
  intros Hu Hfl P n Hn. fold (dot l) (absdot l). rewrite <- (dot_perm _ _ P), <- (absdot_perm _ _ P).
  assert (F : forall x, Rabs (fl x - x) <= u * Rabs x + 0) by (intros; rewrite Rplus_0_r; apply Hfl).
  pose proof (tree_error fl u 0 Hu (Rle_refl 0) F t) as T. rewrite Rmult_0_r, Rplus_0_r in T.
  eapply Rle_trans; [exact T|]. apply Rmult_le_compat_r; [apply absdot_nonneg|].
  assert (D : (depth t <= n)%nat).
  { pose proof (depth_le t). pose proof (products_round_le t).
    rewrite (Permutation_length P) in H. fold n in H. lia. }
  pose proof (le_INR _ _ D). pose proof (Rmult_le_compat_r u _ _ Hu H).
  eapply Rle_trans; [apply (pow_gamma u (depth t)); lra | apply gamma_mono; assumption].
Qed.

(* A sharper bound: only the number of roundings on the longest path counts. A pairwise sum of 2^k products
   has depth k + 1; blocks of c products, summed one after the other, have depth c + n / c. *)
Corollary bound_dot_depth (fl : R -> R) (u : R) (t : tree) :
  0 <= u -> (forall x, Rabs (fl x - x) <= u * Rabs x) -> INR (depth t) * u < 1 ->
  Rabs (eval fl t - dot (terms t)) <= gamma (depth t) u * absdot (terms t).
Proof.
  intros Hu Hfl Hn.
  assert (F : forall x, Rabs (fl x - x) <= u * Rabs x + 0) by (intros; rewrite Rplus_0_r; apply Hfl).
  pose proof (tree_error fl u 0 Hu (Rle_refl 0) F t) as T. rewrite Rmult_0_r, Rplus_0_r in T.
  eapply Rle_trans; [exact T|]. apply Rmult_le_compat_r; [apply absdot_nonneg|].
  apply pow_gamma; assumption.
Qed.

Corollary bound_dot_nearest (prec : Z) (choice : Z -> bool) (t : tree) : (0 < prec)%Z ->
  let u := unit_roundoff prec in let n := length (terms t) in INR n * u < 1 ->
  Rabs (eval (nearest_FLX prec choice) t - dot (terms t)) <= gamma n u * absdot (terms t).
Proof.
  intros Hp u n Hn. apply bound_dot; auto.
  - apply unit_roundoff_nonneg.
  - intros x. apply (nearest_FLX_error prec choice (prec_gt_0 := Hp)).
Qed.

(* With underflow: each product adds at most half the smallest subnormal, enlarged by the roundings after it.
   A sum of two floats does not underflow. *)
Corollary bound_dot_with_underflow (emin prec : Z) (choice : Z -> bool) (t : tree) : (0 < prec)%Z ->
  let u := unit_roundoff prec in let n := length (terms t) in
  Rabs (eval (nearest_FLT emin prec choice) t - dot (terms t)) <=
    ((1 + u) ^ depth t - 1) * absdot (terms t) + INR n * (1 + u) ^ depth t * half_smallest emin.
Proof.
  intros Hp u n. pose proof (half_smallest_nonneg emin) as Hη.
  pose proof (unit_roundoff_nonneg prec : 0 <= u) as Hu.
  destruct (as_nodes_honest (nearest_FLT emin prec choice) u (half_smallest emin)
    (generic_format radix2 (FLT_exp emin prec)) Hu Hη
    (nearest_FLT_error emin prec choice (prec_gt_0 := Hp))
    ltac:(intros x; apply generic_format_round; [apply FLT_exp_valid; exact Hp | apply valid_rnd_N])
    (nearest_FLT_sum emin prec choice (prec_gt_0 := Hp)) t) as (H & V & T & G & U).
  destruct (nodes_error _ H) as [_ E]. rewrite V, T in E. eapply Rle_trans; [exact E|].
  apply Rplus_le_compat.
  - apply Rmult_le_compat_r; [apply absdot_nonneg | lra].
  - eapply Rle_trans; [exact U|]. apply Rmult_le_compat_r; [exact Hη|].
    apply Rmult_le_compat_r; [apply pow_le; lra | apply le_INR, underflows_le].
Qed.

(* Every operation has its own error |δ| <= u (the sum of the sizes of what it adds) + η. Products,
   accumulator and result may have different formats, and several terms may be added at once. growth t is the
   largest product of 1 + u over the operations between a term and the result. underflow t is the sum of all
   η, each enlarged by the operations after it. as_nodes turns each tree above into such a sum. *)
Theorem bound_dot_nodes (t : nodes) (l : list (R * R)) : honest t -> Permutation (products t) l ->
  Rabs (value t - ∑ p ∈ l, fst p * snd p) <=
    (growth t - 1) * (∑ p ∈ l, Rabs (fst p * snd p)) + underflow t.
Proof.
  intros H P. rewrite <- (Sum_perm _ _ (fun p => fst p * snd p) P).
  rewrite <- (Sum_perm _ _ (fun p => Rabs (fst p * snd p)) P). apply (nodes_error t H).
Qed.

(* A tensor core that adds m blocks of products, each block in one operation. *)
Corollary bound_dot_blocks (u η : R) (blocks : list (R * list (R * R))) : 0 <= u -> 0 <= η ->
  let t := blocks_added u η blocks in let m := length blocks in honest t ->
  Rabs (value t - dot (products t)) <=
    ((1 + u) ^ m - 1) * absdot (products t) + INR m * (1 + u) ^ m * η.
Proof.
  intros Hu Hη t m H. pose proof (bound_dot_nodes t _ H (Permutation_refl _)) as B.
  unfold t, m in *. rewrite blocks_growth in B by assumption.
  pose proof (blocks_underflow u η blocks Hu Hη). unfold dot, absdot. lra.
Qed.
(*< bound.dot *)

(* The same with gamma, in a format with underflow that rounds to nearest. *)
Lemma nearest_error emin prec choice t m : (0 < prec)%Z -> (depth t <= m)%nat ->
  let u := unit_roundoff prec in INR m * u < 1 ->
  Rabs (eval (nearest_FLT emin prec choice) t - dot (terms t)) <=
    gamma m u * absdot (terms t)
    + INR (length (terms t)) * (1 + gamma m u) * half_smallest emin.
Proof.
  intros Hp D u Hm. pose proof (unit_roundoff_nonneg prec : 0 <= u) as Hu.
  eapply Rle_trans; [apply (bound_dot_with_underflow emin prec choice t Hp)|]. fold u.
  pose proof (Rle_pow (1 + u) _ _ ltac:(lra) D) as P. pose proof (pow_gamma u m Hu Hm) as G.
  pose proof (half_smallest_nonneg emin).
  apply Rplus_le_compat.
  - apply Rmult_le_compat_r; [apply absdot_nonneg | lra].
  - apply Rmult_le_compat_r; [assumption|]. apply Rmult_le_compat_l; [apply pos_INR | lra].
Qed.

(* A linear layer: n products and a bias β. m counts n - 1 additions, one more for β, and one if products are
   rounded. Each of the n + 1 terms may underflow once, by at most η. *)
(*> bound.linear *)
Theorem bound_linear (emin prec : Z) (choice : Z -> bool) (β : R) (t : tree) (n : nat) (a b : nat -> R) :
  (0 < prec)%Z -> Permutation (terms t) ((β, 1) :: map (fun k => (a k, b k)) (seq 0 n)) ->
  let u := unit_roundoff prec in let η := half_smallest emin in
  let m := (n + products_round t)%nat in INR m * u < 1 ->
  Rabs (eval (nearest_FLT emin prec choice) t - ((∑ k < n, a k * b k) + β)) <=
    gamma m u * ((∑ k < n, Rabs (a k * b k)) + Rabs β) + INR (n + 1) * (1 + gamma m u) * η.
Proof.
  intros Hp P u η m Hm.
  assert (D : (depth t <= m)%nat).
  { pose proof (depth_le t) as D. rewrite (Permutation_length P) in D.
    simpl in D. rewrite map_length, seq_length in D. unfold m. lia. }
  pose proof (nearest_error emin prec choice t m Hp D Hm) as T. fold u η in T.
  rewrite (dot_perm _ _ P), (absdot_perm _ _ P), (Permutation_length P) in T. unfold dot, absdot in T.
  cbn [Sum fst snd length] in T. rewrite !Sum_map, Rmult_1_r, map_length, seq_length in T. cbn [fst snd] in T.
  rewrite (Rplus_comm (Sum _ _) β), (Rplus_comm (Sum _ _) (Rabs β)), Nat.add_1_r. exact T.
Qed.

(* The same where each operation has its own error bound, and the operands a' are within δ of a. *)
Theorem bound_linear_nodes (β : R) (t : nodes) (n : nat) (a a' b δ : nat -> R) : honest t ->
  Permutation (products t) ((β, 1) :: map (fun k => (a' k, b k)) (seq 0 n)) ->
  (forall k, Rabs (a' k - a k) <= δ k) ->
  Rabs (value t - ((∑ k < n, a k * b k) + β)) <=
    (growth t - 1) * ((∑ k < n, Rabs (a' k * b k)) + Rabs β) + underflow t
    + ∑ k < n, δ k * Rabs (b k).
Proof.
  intros H P Hδ. pose proof (bound_dot_nodes t _ H P) as T.
  cbn [Sum fst snd] in T. rewrite !Sum_map, Rmult_1_r in T. cbn [fst snd] in T.
  replace (value t - _) with
    ((value t - (β + ∑ k < n, a' k * b k)) + ((∑ k < n, a' k * b k) - ∑ k < n, a k * b k)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat; [lra|].
  rewrite <- Sum_minus. eapply Rle_trans; [apply Sum_abs|]. apply Sum_le. intros k _.
  replace (a' k * b k - a k * b k) with ((a' k - a k) * b k) by ring.
  rewrite Rabs_mult. apply Rmult_le_compat_r; [apply Rabs_pos | apply Hδ].
Qed.
(*< bound.linear *)
