(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Dot products in floating point, in any order of summation, with or without FMA.

   A computation is a tree: its leaves are the products, rounded or not, its nodes rounded sums
   and fused multiply-adds. Sequential, pairwise, blocked and vectorised sums are all trees. *)

From Sinkproof Require Import Sums.
From Coq Require Import Reals List Permutation ZArith Arith Lia Lra.
From Flocq Require Import Core Relative.
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

(* The terms that a tree adds up, and how many roundings the worst placed of them meets. *)
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
(* 1 when some product is rounded on its own, else 0. *)
Fixpoint products_round (t : tree) : nat :=
  match t with
  | Exact _ _ => 0
  | Prod _ _ => 1
  | Add l r => max (products_round l) (products_round r)
  | Fma _ _ t => products_round t
  end.
(* All roundings of a tree: each may underflow. *)
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

(* n - 1 additions at most, and the product's own rounding. *)
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

  (* One rounding of a sum whose parts have errors: everything grows by 1 + u. *)
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

(* The roundings of IEEE formats: nearest, whatever the ties, with unbounded exponents (FLX) and
   with subnormals (FLT), where an underflow adds half the smallest subnormal. *)
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
End Formats.

Lemma dot_perm l l' : Permutation l l' -> dot l = dot l'.
Proof. apply Sum_perm. Qed.

Lemma absdot_perm l l' : Permutation l l' -> absdot l = absdot l'.
Proof. apply Sum_perm. Qed.

(* Any tree over the terms of l, in any order, under any rounding that errs by at most u: in
   particular to nearest in any precision. *)
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

(* The sharper piece: what counts is the number of roundings on the worst path. Pairwise sums of
   2^k products have depth k + 1, blocks of c summed one after the other c + n / c. *)
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

(* With underflow: each of the roundings adds at most half the smallest subnormal, grown by the
   roundings after it. *)
Corollary bound_dot_with_underflow (emin prec : Z) (choice : Z -> bool) (t : tree) : (0 < prec)%Z ->
  let u := unit_roundoff prec in
  Rabs (eval (nearest_FLT emin prec choice) t - dot (terms t)) <=
    ((1 + u) ^ depth t - 1) * absdot (terms t)
    + INR (roundings t) * (1 + u) ^ depth t * half_smallest emin.
Proof.
  intros Hp u. apply tree_error.
  - apply unit_roundoff_nonneg.
  - apply half_smallest_nonneg.
  - intros x. apply (nearest_FLT_error emin prec choice (prec_gt_0 := Hp)).
Qed.
(*< bound.dot *)

(* A linear layer: n products and a bias β; m counts n - 1 additions, one more for β, and one
   when products round. The inputs a' that the engine holds may differ from the true a by δ. *)
(*> bound.linear *)
Theorem bound_linear (fl : R -> R) (u β : R) (t : tree) (n : nat) (a a' b δ : nat -> R) :
  0 <= u -> (forall x, Rabs (fl x - x) <= u * Rabs x) ->
  Permutation (terms t) ((β, 1) :: map (fun k => (a' k, b k)) (seq 0 n)) ->
  (forall k, Rabs (a' k - a k) <= δ k) ->
  let m := (n + products_round t)%nat in INR m * u < 1 ->
  Rabs (eval fl t - ((∑ k < n, a k * b k) + β)) <=
    gamma m u * ((∑ k < n, Rabs (a' k * b k)) + Rabs β) + ∑ k < n, δ k * Rabs (b k).
Proof.
  intros Hu Hfl P Hδ m Hm.
  assert (F : forall x, Rabs (fl x - x) <= u * Rabs x + 0) by (intros; rewrite Rplus_0_r; apply Hfl).
  pose proof (tree_error fl u 0 Hu (Rle_refl 0) F t) as T. rewrite Rmult_0_r, Rplus_0_r in T.
  rewrite (dot_perm _ _ P), (absdot_perm _ _ P) in T. unfold dot, absdot in T.
  cbn [Sum fst snd] in T. rewrite !Sum_map, Rmult_1_r in T. cbn [fst snd] in T.
  assert (D : (depth t <= m)%nat).
  { pose proof (depth_le t) as D. rewrite (Permutation_length P) in D.
    simpl in D. rewrite map_length, seq_length in D. lia. }
  pose proof (Rmult_le_compat_r u _ _ Hu (le_INR _ _ D)).
  assert (G : (1 + u) ^ depth t - 1 <= gamma m u).
  { eapply Rle_trans; [apply (pow_gamma u (depth t)); lra | apply gamma_mono; assumption]. }
  replace (eval fl t - _) with
    ((eval fl t - (β + ∑ k < n, a' k * b k)) + ((∑ k < n, a' k * b k) - ∑ k < n, a k * b k)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat.
  - eapply Rle_trans; [exact T|]. rewrite (Rplus_comm (Rabs β)).
    apply Rmult_le_compat_r; [|exact G]. pose proof (Rabs_pos β).
    pose proof (Sum_nonneg (seq 0 n) (fun k => Rabs (a' k * b k)) (fun _ _ => Rabs_pos _)). lra.
  - rewrite <- Sum_minus. eapply Rle_trans; [apply Sum_abs|]. apply Sum_le. intros k _.
    replace (a' k * b k - a k * b k) with ((a' k - a k) * b k) by ring.
    rewrite Rabs_mult. apply Rmult_le_compat_r; [apply Rabs_pos | apply Hδ].
Qed.
(*< bound.linear *)

(* ---- exact sums ---- *)

Definition binary64 := FLT_exp (-1074) 53.
Definition bfloat16 := FLT_exp (-133) 8.

(* x is a whole multiple of 2^L. *)
Definition multiple (L : Z) (x : R) : Prop := exists m : Z, x = IZR m * bpow radix2 L.

Lemma multiple_plus L x y : multiple L x -> multiple L y -> multiple L (x + y).
Proof. intros [m ->] [n ->]. exists (m + n)%Z. rewrite plus_IZR. ring. Qed.

Lemma multiple_dot L l :
  (forall a b, In (a, b) l -> multiple L (a * b)) -> multiple L (dot l).
Proof.
  unfold dot. induction l as [|[a b] l IH]; simpl; intros H.
  - exists 0%Z. ring.
  - apply multiple_plus; [apply H; auto | apply IH; intros; apply H; auto].
Qed.

(* A multiple of 2^L below 2^(53 + L) needs at most 53 bits: binary64 holds it. *)
Lemma multiple_format L x : (-1074 <= L)%Z -> multiple L x -> Rabs x < bpow radix2 (53 + L) ->
  generic_format radix2 binary64 x.
Proof.
  intros HL [m ->] Hx. apply generic_format_FLT. exists (Float radix2 m L); [reflexivity | | exact HL].
  rewrite bpow_plus, Rabs_mult, (Rabs_pos_eq (bpow _ L)) in Hx by apply bpow_ge_0.
  apply Rmult_lt_reg_r in Hx; [|apply bpow_gt_0].
  apply lt_IZR. rewrite abs_IZR. exact Hx.
Qed.

(* Products of bfloat16 numbers are multiples of 2^-266, and of more: the last bits add. *)
Lemma multiple_product a b e f : multiple e a -> multiple f b -> multiple (e + f) (a * b).
Proof.
  intros [m ->] [n ->]. exists (m * n)%Z. rewrite mult_IZR, bpow_plus. ring.
Qed.

Lemma multiple_bfloat16 x : generic_format radix2 bfloat16 x -> multiple (-133) x.
Proof.
  intros F. apply FLT_format_generic in F; [|easy]. destruct F as [[m e] -> _ He].
  exists (m * 2 ^ (e + 133))%Z. unfold F2R. simpl Fnum. simpl Fexp. simpl Fexp in He.
  rewrite mult_IZR, (IZR_Zpower radix2) by lia. rewrite Rmult_assoc, <- bpow_plus.
  do 2 f_equal. lia.
Qed.

(* No rounding happens: every partial sum, in every order, fits. Any rounding mode. *)
(*> bound.dot-exact *)
Theorem bound_dot_exact (rnd : R -> Z) {valid : Valid_rnd rnd} (L : Z) (t : tree) :
  (-1074 <= L)%Z ->
  (forall a b, In (a, b) (terms t) -> multiple L (a * b)) ->
  ∑ p ∈ terms t, Rabs (fst p * snd p) < bpow radix2 (53 + L) ->
  eval (round radix2 binary64 rnd) t = ∑ p ∈ terms t, fst p * snd p.
Proof.
  fold (absdot (terms t)) (dot (terms t)). intros HL.
  assert (Fits : forall l, (forall a b, In (a, b) l -> multiple L (a * b)) ->
    absdot l < bpow radix2 (53 + L) -> round radix2 binary64 rnd (dot l) = dot l).
  { intros l M B. apply round_generic; [exact valid|]. apply (multiple_format L); auto.
    - apply multiple_dot, M.
    - eapply Rle_lt_trans; [apply dot_le_absdot | exact B]. }
  induction t as [a b | a b | l IHl r IHr | a b t IH]; intros M B; cbn [eval].
  - unfold dot. simpl. ring.
  - specialize (Fits [(a, b)] M B). unfold dot in *. simpl in *. rewrite Rplus_0_r in *. exact Fits.
  - specialize (Fits (terms (Add l r)) M B). cbn [terms] in *. unfold dot, absdot in *.
    rewrite !Sum_app in *. pose proof (absdot_nonneg (terms l)). pose proof (absdot_nonneg (terms r)).
    unfold absdot in *. rewrite IHl, IHr; try lra; auto; intros; apply M, in_or_app; auto.
  - specialize (Fits (terms (Fma a b t)) M B). cbn [terms] in *. unfold dot, absdot in *.
    cbn [Sum fst snd] in *. pose proof (Rabs_pos (a * b)).
    rewrite IH; try lra; auto. intros. apply M. right. assumption.
Qed.

(* So the order does not matter, to the last bit. *)
Corollary bound_dot_exact_any_order (rnd : R -> Z) {valid : Valid_rnd rnd} (L : Z) (t t' : tree) :
  (-1074 <= L)%Z -> (forall a b, In (a, b) (terms t) -> multiple L (a * b)) ->
  absdot (terms t) < bpow radix2 (53 + L) -> Permutation (terms t) (terms t') ->
  eval (round radix2 binary64 rnd) t = eval (round radix2 binary64 rnd) t'.
Proof.
  intros HL M B P. rewrite (bound_dot_exact rnd L t HL M B). rewrite (bound_dot_exact rnd L t' HL).
  - apply Sum_perm, P.
  - intros a b Hab. apply M. apply (Permutation_in _ (Permutation_sym P)), Hab.
  - fold (absdot (terms t')). rewrite <- (absdot_perm _ _ P). exact B.
Qed.

(* bfloat16 inputs, when even the smallest product counts in full: L = -266. *)
Corollary bound_dot_exact_bfloat16 (rnd : R -> Z) {valid : Valid_rnd rnd} (t : tree) :
  (forall a b, In (a, b) (terms t) ->
     generic_format radix2 bfloat16 a /\ generic_format radix2 bfloat16 b) ->
  absdot (terms t) < bpow radix2 (53 - 266) ->
  eval (round radix2 binary64 rnd) t = dot (terms t).
Proof.
  intros F B. apply (bound_dot_exact rnd (-266)); [lia | | exact B]. intros a b Hab.
  destruct (F a b Hab). apply (multiple_product a b (-133) (-133)); apply multiple_bfloat16; assumption.
Qed.
(*< bound.dot-exact *)
