(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* Error bounds of a matrix product whose operands are rounded when they are read (bound.operands), whose activations
   are quantised in blocks of integers (bound.q8), whose sums meet the minima of a weight (bound.q8-minima), or as codes with a scale (bound.scaled), whose accumulator has a
   narrow format (bound.accumulator), or whose sum is in parts that are rounded (bound.parts, bound.parts-mixed).
   Assumed: an error bound for each operation (Nodes.v), and roundings that are monotone. *)

From Sinkproof Require Import Sums Nodes Summation.
From Coq Require Import Reals List Permutation Lra Lia Psatz.
Import ListNotations.
Open Scope R_scope.

Lemma within x u : Rabs x <= u -> - u <= x <= u.
Proof. unfold Rabs. destruct (Rcase_abs x); lra. Qed.

Definition monotone (f : R -> R) : Prop := forall x y, x <= y -> f x <= f y.

(* Rounding on read is monotone, so the ends of an operand's interval are read like the operand. The sum is
   that of the operands as they were read, in any tree of operations. The second theorem: the ends of the sum
   are rounded before and after the bias is added, as the sum is. *)
(*> bound.operands *)
Theorem bound_operands {key} (J : list key) (ρ σ : key -> R -> R) (a b lo hi : key -> R) (t : nodes) :
  honest t -> (forall k, monotone (ρ k)) -> (forall k, lo k <= a k <= hi k) ->
  Permutation (products t) (map (fun k => (ρ k (a k), σ k (b k))) J) ->
  Rabs (value t - ∑ k ∈ J, ρ k (a k) * σ k (b k)) <=
    (growth t - 1) * (∑ k ∈ J, Rabs (ρ k (a k) * σ k (b k))) + underflow t /\
  forall k, ρ k (lo k) <= ρ k (a k) <= ρ k (hi k).
Proof.
  intros Ht M L P. split.
  - pose proof (bound_dot_nodes t _ Ht P) as B. rewrite !Sum_map in B. exact B.
  - intros k. split; apply M; apply L.
Qed.

Theorem bound_operands_product (ρ σ : R -> R) (s lo hi β : R) :
  monotone ρ -> monotone σ -> lo <= s <= hi ->
  σ (ρ lo + β) <= σ (ρ s + β) <= σ (ρ hi + β).
Proof.
  intros Mρ Mσ [L H]. pose proof (Mρ _ _ L). pose proof (Mρ _ _ H). split; apply Mσ; lra.
Qed.
(*< bound.operands *)

(* Three roundings on the way to t = x / d: of d, of its reciprocal, of the product. *)
Lemma three_roundings (u δ1 δ2 δ3 : R) : 0 <= u -> 3 * u < 1 ->
  Rabs δ1 <= u -> Rabs δ2 <= u -> Rabs δ3 <= u ->
  Rabs ((1 + δ2) * (1 + δ3) / (1 + δ1) - 1) <= gamma 3 u.
Proof.
  intros Hu H3 H1 H2 H4. unfold gamma. simpl (INR 3). replace (1 + 1 + 1) with 3 by ring.
  apply within in H1; apply within in H2; apply within in H4.
  assert (P : 0 < 1 + δ1) by lra. assert (Q : 0 < 1 - 3 * u) by lra.
  assert (U : (1 + δ2) * (1 + δ3) <= (1 + u) * (1 + u)) by (apply Rmult_le_compat; lra).
  assert (D : (1 - u) * (1 - u) <= (1 + δ2) * (1 + δ3)) by (apply Rmult_le_compat; lra).
  replace ((1 + δ2) * (1 + δ3) / (1 + δ1) - 1) with (((1 + δ2) * (1 + δ3) - (1 + δ1)) / (1 + δ1)) by (field; lra).
  apply Rabs_le. split.
  - apply Rmult_le_reg_r with ((1 + δ1) * (1 - 3 * u)); [nra|].
    field_simplify; try lra. nra.
  - apply Rmult_le_reg_r with ((1 + δ1) * (1 - 3 * u)); [nra|].
    field_simplify; try lra. nra.
Qed.

(* q is an integer nearest to the computed value t' of t = 127 x / a, so it lies within 1/2 of the interval of
   t'. A tie may go either way. *)
(*> bound.q8 *)
Theorem bound_q8 (x a u δ1 δ2 δ3 t' : R) (q : Z) : 0 < a -> 0 <= u -> 3 * u < 1 ->
  Rabs δ1 <= u -> Rabs δ2 <= u -> Rabs δ3 <= u ->
  let d' := a / 127 * (1 + δ1) in let i' := 1 / d' * (1 + δ2) in t' = x * i' * (1 + δ3) ->
  Rabs (IZR q - t') <= 1 / 2 -> let t := 127 * x / a in
  t - gamma 3 u * Rabs t - 1 / 2 <= IZR q <= t + gamma 3 u * Rabs t + 1 / 2.
Proof.
  intros Ha Hu H3 H1 H2 H4 d' i' Et Hq t.
  pose proof (three_roundings u δ1 δ2 δ3 Hu H3 H1 H2 H4) as G.
  assert (P : 0 < 1 + δ1) by (apply within in H1; lra).
  assert (E : t' - t = t * ((1 + δ2) * (1 + δ3) / (1 + δ1) - 1)).
  { rewrite Et. unfold i', d', t. field. lra. }
  assert (T : Rabs (t' - t) <= gamma 3 u * Rabs t).
  { rewrite E, Rabs_mult, Rmult_comm. apply Rmult_le_compat_r; [apply Rabs_pos | exact G]. }
  apply within in T. apply within in Hq. lra.
Qed.

(* Sums of integers are exact. So the tree adds one term for each part: its scale times an exact sum of
   neighbouring products. Its error bound counts these parts, not the products. *)
Theorem bound_q8_sums (t : nodes) (parts : list (R * list (R * R))) : honest t ->
  let exact p := ∑ w ∈ snd p, fst w * snd w in
  Permutation (products t) (map (fun p => (fst p, exact p)) parts) ->
  Rabs (value t - ∑ p ∈ parts, ∑ w ∈ snd p, fst p * (fst w * snd w)) <=
    (growth t - 1) * (∑ p ∈ parts, ∑ w ∈ snd p, Rabs (fst p * (fst w * snd w))) + underflow t.
Proof.
  intros Ht exact P. pose proof (bound_dot_nodes t _ Ht P) as B. rewrite !Sum_map in B. cbn [fst snd] in B.
  assert (E : (∑ p ∈ parts, ∑ w ∈ snd p, fst p * (fst w * snd w)) = ∑ p ∈ parts, fst p * exact p)
    by (apply Sum_ext; intros p; apply Sum_scal_l).
  assert (A : (∑ p ∈ parts, Rabs (fst p * exact p)) <=
              ∑ p ∈ parts, ∑ w ∈ snd p, Rabs (fst p * (fst w * snd w))).
  { apply Sum_le. intros p _. unfold exact. rewrite <- Sum_scal_l. apply Sum_abs. }
  rewrite E. pose proof (growth_ge_1 t Ht).
  pose proof (Rmult_le_compat_l (growth t - 1) _ _ ltac:(lra) A). lra.
Qed.
(*< bound.q8 *)

(* Two roundings of the scale a / 127 and one of its product with the sum Q of a block's integers; then the sum is
   stored by a monotone rounding. *)
Lemma three_products (u δ1 δ2 δ3 : R) : 0 <= u -> 3 * u < 1 ->
  Rabs δ1 <= u -> Rabs δ2 <= u -> Rabs δ3 <= u -> Rabs ((1 + δ1) * (1 + δ2) * (1 + δ3) - 1) <= gamma 3 u.
Proof.
  intros Hu H3 H1 H2 H4. pose proof (pow_gamma u 3 Hu ltac:(simpl; lra)) as G.
  apply within in H1; apply within in H2; apply within in H4. simpl pow in G.
  assert (L12 : (1 - u) * (1 - u) <= (1 + δ1) * (1 + δ2) <= (1 + u) * (1 + u)) by (split; apply Rmult_le_compat; lra).
  assert (L : (1 - u) * (1 - u) * (1 - u) <= (1 + δ1) * (1 + δ2) * (1 + δ3) <= (1 + u) * (1 + u) * (1 + u)).
  { split; apply Rmult_le_compat; try lra; try nra. }
  apply Rabs_le. split; nra.
Qed.

(*> bound.q8-minima *)
Theorem bound_q8_minima (ρ : R -> R) (a u δ1 δ2 δ3 : R) (Q : Z) : monotone ρ -> 0 <= u -> 3 * u < 1 ->
  Rabs δ1 <= u -> Rabs δ2 <= u -> Rabs δ3 <= u ->
  let s := a / 127 * IZR Q in let s' := a / 127 * (1 + δ1) * (1 + δ2) * IZR Q * (1 + δ3) in
  ρ (s - gamma 3 u * Rabs s) <= ρ s' <= ρ (s + gamma 3 u * Rabs s).
Proof.
  intros M Hu H3 H1 H2 H4 s s'. pose proof (three_products u δ1 δ2 δ3 Hu H3 H1 H2 H4) as G.
  assert (T : Rabs (s' - s) <= gamma 3 u * Rabs s).
  { replace (s' - s) with (s * ((1 + δ1) * (1 + δ2) * (1 + δ3) - 1)) by (unfold s, s'; ring).
    rewrite Rabs_mult, Rmult_comm. apply Rmult_le_compat_r; [apply Rabs_pos | exact G]. }
  apply within in T. split; apply M; lra.
Qed.

(* The tree adds one term for each exact part, and one for each minimum. *)
Theorem bound_q8_minima_sums (t : nodes) (parts : list (R * list (R * R))) (minima : list (R * R)) : honest t ->
  let exact p := ∑ w ∈ snd p, fst w * snd w in
  Permutation (products t) (map (fun p => (fst p, exact p)) parts ++ minima) ->
  Rabs (value t - ((∑ p ∈ parts, ∑ w ∈ snd p, fst p * (fst w * snd w)) + ∑ m ∈ minima, fst m * snd m)) <=
    (growth t - 1) * ((∑ p ∈ parts, ∑ w ∈ snd p, Rabs (fst p * (fst w * snd w))) + ∑ m ∈ minima, Rabs (fst m * snd m))
    + underflow t.
Proof.
  intros Ht exact P.
  pose proof (bound_q8_sums t (parts ++ map (fun m => (fst m, [(1, snd m)])) minima) Ht) as B. cbn zeta in B.
  rewrite !Sum_app, !Sum_map in B. cbn [fst snd] in B.
  assert (E : forall m : R * R, (∑ w ∈ [(1, snd m)], fst m * (fst w * snd w)) = fst m * snd m)
    by (intros m; cbn; ring).
  assert (A : forall m : R * R, (∑ w ∈ [(1, snd m)], Rabs (fst m * (fst w * snd w))) = Rabs (fst m * snd m))
    by (intros m; cbn; rewrite Rmult_1_l; ring).
  rewrite (Sum_ext _ _ _ E), (Sum_ext _ _ _ A) in B. apply B.
  eapply Permutation_trans; [exact P|]. rewrite map_app, map_map. apply Permutation_app_head.
  cbn [fst snd]. rewrite <- (map_id minima) at 1. apply Permutation_refl'. apply map_ext.
  intros [m s]. cbn. f_equal. ring.
Qed.
(*< bound.q8-minima *)

(* Numbers as codes with a scale. Division by a positive scale between lo and hi, with a relative error g. *)
Lemma quotient_between (y s lo hi : R) : 0 < lo -> lo <= s <= hi ->
  Rmin (y / lo) (y / hi) <= y / s <= Rmax (y / lo) (y / hi).
Proof.
  intros Hlo [L H]. unfold Rdiv.
  assert (I : / hi <= / s <= / lo) by (split; apply Rinv_le_contravar; lra).
  destruct (Rle_dec 0 y) as [P | N].
  - pose proof (Rmult_le_compat_l y _ _ P (proj1 I)). pose proof (Rmult_le_compat_l y _ _ P (proj2 I)).
    unfold Rmin, Rmax. repeat destruct Rle_dec; lra.
  - assert (Q : 0 <= - y) by lra.
    pose proof (Rmult_le_compat_l (- y) _ _ Q (proj1 I)). pose proof (Rmult_le_compat_l (- y) _ _ Q (proj2 I)).
    unfold Rmin, Rmax. repeat destruct Rle_dec; lra.
Qed.

Lemma widen_monotone (g x y : R) : 0 <= g <= 1 -> x <= y ->
  x - g * Rabs x <= y - g * Rabs y /\ x + g * Rabs x <= y + g * Rabs y.
Proof.
  intros G L. unfold Rabs. destruct (Rcase_abs x), (Rcase_abs y); split; nra.
Qed.

Lemma product_between (q l h s lo hi : R) : 0 <= lo -> lo <= s <= hi -> l <= q <= h ->
  Rmin (l * lo) (l * hi) <= q * s <= Rmax (h * lo) (h * hi).
Proof.
  intros P [L H] [Q U].
  pose proof (Rmult_le_compat_r s _ _ ltac:(lra) Q). pose proof (Rmult_le_compat_r s _ _ ltac:(lra) U).
  assert (A : l * lo <= l * s \/ l * hi <= l * s) by (destruct (Rle_dec 0 l); [left | right]; nra).
  assert (B : h * s <= h * lo \/ h * s <= h * hi) by (destruct (Rle_dec 0 h); [right | left]; nra).
  unfold Rmin, Rmax. split; repeat destruct Rle_dec; lra.
Qed.

(*> bound.scaled *)
(* A code q of x lies between the roundings down and up of a computed quotient t' (they differ where a tie may go
   either way). s is the real scale, s' the one that multiplies the code. *)
Theorem bound_scaled (down up : R -> R) (x xlo xhi s slo shi s' lo' hi' t' g q : R) :
  monotone down -> monotone up -> xlo <= x <= xhi -> 0 < slo -> slo <= s <= shi ->
  0 <= lo' -> lo' <= s' <= hi' -> 0 <= g <= 1 ->
  Rabs (t' - x / s) <= g * Rabs (x / s) -> down t' <= q <= up t' ->
  let tlo := Rmin (xlo / slo) (xlo / shi) in let thi := Rmax (xhi / slo) (xhi / shi) in
  let qlo := down (tlo - g * Rabs tlo) in let qhi := up (thi + g * Rabs thi) in
  Rmin (qlo * lo') (qlo * hi') <= q * s' <= Rmax (qhi * lo') (qhi * hi').
Proof.
  intros Md Mu X S0 S L0 S' G T Q tlo thi qlo qhi.
  apply within in T.
  assert (P : 0 < s) by lra.
  assert (I : 0 <= / s) by (left; apply Rinv_0_lt_compat; exact P).
  assert (XL : xlo / s <= x / s) by (apply Rmult_le_compat_r; lra).
  assert (XH : x / s <= xhi / s) by (apply Rmult_le_compat_r; lra).
  pose proof (quotient_between xlo s slo shi S0 S) as [BL _].
  pose proof (quotient_between xhi s slo shi S0 S) as [_ BH].
  pose proof (widen_monotone g tlo (x / s) G ltac:(unfold tlo; lra)) as [WL _].
  pose proof (widen_monotone g (x / s) thi G ltac:(unfold thi; lra)) as [_ WH].
  apply product_between; [lra | lra |]. split.
  - eapply Rle_trans; [apply Md | apply Q]. lra.
  - eapply Rle_trans; [apply Q | apply Mu]. lra.
Qed.

(* The number of a code may be rounded again, or not. *)
Theorem bound_scaled_stored (σ : R -> R) (v lo hi y : R) : monotone σ -> lo <= v <= hi -> y = v \/ y = σ v ->
  Rmin lo (σ lo) <= y <= Rmax hi (σ hi).
Proof.
  intros M [L H] E. pose proof (M _ _ L). pose proof (M _ _ H). unfold Rmin, Rmax.
  destruct E as [-> | ->]; repeat destruct Rle_dec; lra.
Qed.

(* A scale that multiplies the sum of the codes, with its roundings, is a scale of each code. *)
Theorem bound_scaled_late {key} (J : list key) (q w : key -> R) (s' : R) :
  s' * (∑ k ∈ J, q k * w k) = ∑ k ∈ J, s' * (q k * w k).
Proof. symmetry. apply Sum_scal_l. Qed.
(*< bound.scaled *)

(* A sum in a known order: step k computes a partial sum from the one before it. *)
Fixpoint running (step : nat -> R -> R) (n : nat) : R :=
  match n with
  | O => 0
  | S k => step k (running step k)
  end.

(*> bound.accumulator *)
(* Any steps: step k lies between low k and high k, which are monotone in the partial sum. A sum that is
   rescaled and rounded on the way is one with more steps. *)
Theorem bound_accumulator_steps (low step high : nat -> R -> R) (n : nat) :
  (forall k, monotone (low k)) -> (forall k, monotone (high k)) ->
  (forall k s, low k s <= step k s <= high k s) ->
  running low n <= running step n <= running high n.
Proof.
  intros Ml Mh B. induction n as [|n [IL IH]]; cbn [running]; [lra|]. split.
  - eapply Rle_trans; [apply Ml, IL | apply B].
  - eapply Rle_trans; [apply B | apply Mh, IH].
Qed.

(* ρ rounds to the accumulator's format. Before that, the format inside may or may not round: at each x, first
   k x is x or ι x. The ends of the interval run through the same steps as the sum. *)
Theorem bound_accumulator (ρ ι : R -> R) (first : nat -> R -> R) (p lo hi : nat -> R) (n : nat) :
  monotone ρ -> monotone ι -> (forall k, lo k <= p k <= hi k) ->
  (forall k x, first k x = x \/ first k x = ι x) ->
  running (fun k s => ρ (Rmin (s + lo k) (ι (s + lo k)))) n <=
  running (fun k s => ρ (first k (s + p k))) n <=
  running (fun k s => ρ (Rmax (s + hi k) (ι (s + hi k)))) n.
Proof.
  intros Mρ Mι L F. apply bound_accumulator_steps.
  - intros k x y H. apply Mρ. pose proof (Mι (x + lo k) (y + lo k) ltac:(lra)).
    unfold Rmin.
    repeat destruct Rle_dec; lra.
  - intros k x y H. apply Mρ. pose proof (Mι (x + hi k) (y + hi k) ltac:(lra)).
    unfold Rmax. repeat destruct Rle_dec; lra.
  - intros k s. specialize (L k).
    pose proof (Mι (s + lo k) (s + p k) ltac:(lra)). pose proof (Mι (s + p k) (s + hi k) ltac:(lra)).
    split; apply Mρ; destruct (F k (s + p k)) as [E | E]; rewrite E;
      unfold Rmin, Rmax; repeat destruct Rle_dec; lra.
Qed.

(* Any order, with at most m narrow operations on any path. A rescaling of the sum counts as one operation. *)
Theorem bound_accumulator_any_order (u : R) (m : nat) (t : nodes) (l : list (R * R)) :
  0 <= u -> honest t -> all_within u t -> (levels t <= m)%nat -> INR m * u < 1 ->
  Permutation (products t) l ->
  Rabs (value t - ∑ p ∈ l, fst p * snd p) <=
    gamma m u * (∑ p ∈ l, Rabs (fst p * snd p)) + underflow t.
Proof.
  intros Hu Ht W Hm Hmu P. pose proof (bound_dot_nodes t l Ht P) as B.
  pose proof (growth_levels u t Hu Ht W) as G.
  assert (K : growth t - 1 <= gamma m u).
  { pose proof (Rle_pow (1 + u) (levels t) m ltac:(lra) Hm).
    pose proof (pow_gamma u m Hu Hmu). lra. }
  assert (N : 0 <= ∑ p ∈ l, Rabs (fst p * snd p)) by (apply Sum_nonneg; intros; apply Rabs_pos).
  pose proof (Rmult_le_compat_r _ _ _ N K). lra.
Qed.
(*< bound.accumulator *)

(* Parts of a sum, s k, each rounded by ρ; then they are added by a tree with at most m operations on any path, each
   within v. *)
(*> bound.parts *)
Theorem bound_parts {key} (J : list key) (ρ : R -> R) (s lo hi : key -> R) (v : R) (m : nat) (t : nodes) :
  monotone ρ -> (forall k, lo k <= s k <= hi k) ->
  0 <= v -> honest t -> all_within v t -> (levels t <= m)%nat -> INR m * v < 1 ->
  Permutation (products t) (map (fun k => (ρ (s k), 1)) J) ->
  (forall k, ρ (lo k) <= ρ (s k) <= ρ (hi k)) /\
  Rabs (value t - ∑ k ∈ J, ρ (s k)) <= gamma m v * (∑ k ∈ J, Rabs (ρ (s k))) + underflow t.
Proof.
  intros M B Hv Ht W Hm Hmv P. split; [intros k; split; apply M; apply B|].
  pose proof (bound_accumulator_any_order v m t _ Hv Ht W Hm Hmv P) as E. rewrite !Sum_map in E. cbn [fst snd] in E.
  rewrite (Sum_ext J (fun k => ρ (s k) * 1) (fun k => ρ (s k))) in E by (intros; ring).
  rewrite (Sum_ext J (fun k => Rabs (ρ (s k) * 1)) (fun k => Rabs (ρ (s k)))) in E
    by (intros; rewrite Rmult_1_r; reflexivity).
  exact E.
Qed.
(*< bound.parts *)

Lemma Sum_columns {A B} (J : list A) (g : A -> list B) (f : B -> R) :
  ∑ k ∈ flat_map g J, f k = ∑ j ∈ J, ∑ k ∈ g j, f k.
Proof. induction J; simpl; [reflexivity | rewrite Sum_app, IHJ; reflexivity]. Qed.

(* Each rank has some columns C p of every expert, and a share β p of the biases. It mixes the experts e by their
   weights w: S p over the reals, s p as computed, which ρ rounds. Then the ranks are added by a tree as above. *)
(*> bound.parts-mixed *)
Definition mixed_by {expert col} (E : list expert) (w b : expert -> R) (d : expert -> col -> R) (C : list col)
  (β : R) : R := ∑ e ∈ E, w e * ((∑ c ∈ C, d e c) + β * b e).

Theorem bound_parts_mixed {expert rank col} (E : list expert) (P : list rank) (all : list col) (C : rank -> list col)
  (w b : expert -> R) (d : expert -> col -> R) (β : rank -> R) (ρ : R -> R) (s ε : rank -> R) (v : R) (m : nat)
  (t : nodes) :
  Permutation all (flat_map C P) -> ∑ p ∈ P, β p = 1 ->
  (forall p, Rabs (s p - mixed_by E w b d (C p) (β p)) <= ε p) ->
  0 <= v -> honest t -> all_within v t -> (levels t <= m)%nat -> INR m * v < 1 ->
  Permutation (products t) (map (fun p => (ρ (s p), 1)) P) ->
  ∑ p ∈ P, mixed_by E w b d (C p) (β p) = ∑ e ∈ E, w e * ((∑ c ∈ all, d e c) + b e) /\
  Rabs (value t - ∑ e ∈ E, w e * ((∑ c ∈ all, d e c) + b e)) <=
    gamma m v * (∑ p ∈ P, Rabs (ρ (s p))) + underflow t + ∑ p ∈ P, (Rabs (ρ (s p) - s p) + ε p).
Proof.
  intros HC Hβ Hs Hv Ht W Hm Hmv HP.
  assert (K : ∑ p ∈ P, mixed_by E w b d (C p) (β p) = ∑ e ∈ E, w e * ((∑ c ∈ all, d e c) + b e)).
  { unfold mixed_by. rewrite Sum_swap. apply Sum_ext. intros e.
    rewrite Sum_scal_l, Sum_plus, Sum_scal_r, Hβ, Rmult_1_l, (Sum_perm _ _ _ HC), Sum_columns. reflexivity. }
  split; [exact K|]. rewrite <- K.
  pose proof (bound_accumulator_any_order v m t _ Hv Ht W Hm Hmv HP) as B. rewrite !Sum_map in B. cbn [fst snd] in B.
  rewrite (Sum_ext P (fun p => ρ (s p) * 1) (fun p => ρ (s p))) in B by (intros; ring).
  rewrite (Sum_ext P (fun p => Rabs (ρ (s p) * 1)) (fun p => Rabs (ρ (s p)))) in B
    by (intros; rewrite Rmult_1_r; reflexivity).
  assert (D : Rabs (∑ p ∈ P, (ρ (s p) - mixed_by E w b d (C p) (β p))) <= ∑ p ∈ P, (Rabs (ρ (s p) - s p) + ε p)).
  { eapply Rle_trans; [apply Sum_abs|]. apply Sum_le. intros p _. specialize (Hs p).
    replace (ρ (s p) - mixed_by E w b d (C p) (β p))
      with ((ρ (s p) - s p) + (s p - mixed_by E w b d (C p) (β p))) by ring.
    eapply Rle_trans; [apply Rabs_triang | lra]. }
  rewrite Sum_minus in D.
  replace (value t - ∑ p ∈ P, mixed_by E w b d (C p) (β p))
    with ((value t - ∑ p ∈ P, ρ (s p)) + ((∑ p ∈ P, ρ (s p)) - ∑ p ∈ P, mixed_by E w b d (C p) (β p))) by ring.
  eapply Rle_trans; [apply Rabs_triang | lra].
Qed.
(*< bound.parts-mixed *)
