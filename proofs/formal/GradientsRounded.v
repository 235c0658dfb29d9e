(* SPDX-License-Identifier: Apache-2.0
   Copyright 2026 the sinkproof authors *)

(* How far a computed gradient may be from the real one (grad.rounded). A gradient is a sum of terms; a term is a
   product of what its stage reads. On its way into the sum a term passes roundings: each multiplies it by 1 + δ, or
   divides it by 1 + δ where the rounding is of a divisor, |δ| <= u. A result that underflows is off by η at most: a
   flush to zero, or a rounding to a subnormal number. The sum is taken in any order, by parts and atomics or not. *)

From Sinkproof Require Import Sums Nodes Summation.
From Coq Require Import Reals List Permutation ZArith Arith Lia Lra.
From Flocq Require Import Core Relative.
Import ListNotations.
Open Scope R_scope.

(*> grad.rounded *)
(* computed u η K m l x: arithmetic makes x of the terms l, each of which passes at most K roundings on its way, and
   m results underflow. *)
Inductive computed (u η : R) : nat -> nat -> list R -> R -> Prop :=
  | Term t : computed u η 0 0 [t] t
  | Added K m n l r x y :
      computed u η K m l x -> computed u η K n r y -> computed u η K (m + n) (l ++ r) (x + y)
  | Rounded K m l x δ : computed u η K m l x -> Rabs δ <= u -> computed u η (S K) m l (x * (1 + δ))
  | Divided K m l x δ : computed u η K m l x -> Rabs δ <= u -> computed u η (S K) m l (x / (1 + δ))
  | Underflown K m l x e : computed u η K m l x -> Rabs e <= η -> computed u η (S K) (S m) l (x + e)
  | Unrounded K m l x : computed u η K m l x -> computed u η (S K) m l x.
(*< grad.rounded *)

(* The factor by which K roundings enlarge a term at most. *)
Definition grown (u : R) (K : nat) : R := / (1 - u) ^ K.

Lemma grown_ge_1 u K : 0 <= u < 1 -> 1 <= grown u K.
Proof.
  intros Hu. unfold grown. pose proof (pow_lt (1 - u) K ltac:(lra)).
  pose proof (pow_incr (1 - u) 1 K ltac:(lra)) as L. rewrite pow1 in L.
  rewrite <- Rinv_1 at 1. apply Rinv_le_contravar; lra.
Qed.

Lemma grown_S u K : 0 <= u < 1 -> grown u K = (1 - u) * grown u (S K).
Proof. intros Hu. unfold grown. cbn [pow]. pose proof (pow_lt (1 - u) K ltac:(lra)). field. lra. Qed.

Lemma grown_gamma u K : 0 <= u -> INR K * u < 1 -> grown u K <= 1 + gamma K u.
Proof.
  intros Hu HK. destruct K as [|K].
  { unfold grown, gamma. simpl. rewrite Rinv_1. unfold Rdiv. rewrite !Rmult_0_l. lra. }
  assert (u < 1).
  { rewrite S_INR in HK. pose proof (pos_INR K). pose proof (Rmult_le_pos _ _ H Hu). lra. }
  set (N := S K) in *. assert (B : 1 - INR N * u <= (1 - u) ^ N).
  { clear HK. clearbody N. induction N as [|N IH]; [simpl; lra|]. rewrite S_INR. cbn [pow]. pose proof (pos_INR N).
    pose proof (Rmult_le_compat_l (1 - u) _ _ ltac:(lra) IH).
    assert (0 <= INR N * (u * u)) by (apply Rmult_le_pos; [lra | nra]). lra. }
  unfold grown, gamma. replace (1 + INR N * u / (1 - INR N * u)) with (/ (1 - INR N * u)) by (field; lra).
  apply Rinv_le_contravar; lra.
Qed.

Definition sizes (l : list R) : R := ∑ t ∈ l, Rabs t.

Lemma sizes_nonneg l : 0 <= sizes l.
Proof. apply Sum_nonneg. intros. apply Rabs_pos. Qed.

(* One step: a result x within (g - 1) A + U of the sum s, |s| <= A, is multiplied by a factor within u / (1 - u) of
   1, where (1 - u) h = g. *)
Lemma factor_step s A U g h u x ρ : 0 <= u < 1 -> Rabs s <= A -> 0 <= U -> 1 <= g -> g = (1 - u) * h ->
  Rabs (x - s) <= (g - 1) * A + U -> Rabs (ρ - 1) <= u / (1 - u) ->
  Rabs (x * ρ - s) <= (h - 1) * A + U / (1 - u).
Proof.
  intros Hu Hs HU Hg Eh Hx Hρ. set (v := u / (1 - u)) in *.
  assert (V : 0 <= v) by (apply Rmult_le_pos; [lra | apply Rlt_le, Rinv_0_lt_compat; lra]).
  assert (E1 : h = g * (1 + v)) by (unfold v; rewrite Eh; field; lra).
  assert (E2 : U / (1 - u) = U * (1 + v)) by (unfold v; field; lra).
  rewrite E2, E1. assert (A0 : 0 <= A) by (pose proof (Rabs_pos s); lra).
  replace (x * ρ - s) with ((x - s) + (x - s) * (ρ - 1) + s * (ρ - 1)) by ring.
  pose proof (Rabs_triang ((x - s) + (x - s) * (ρ - 1)) (s * (ρ - 1))).
  pose proof (Rabs_triang (x - s) ((x - s) * (ρ - 1))). rewrite !Rabs_mult in *.
  pose proof (Rabs_pos (x - s)). pose proof (Rabs_pos (ρ - 1)). pose proof (Rabs_pos s).
  assert (Rabs (x - s) * Rabs (ρ - 1) <= ((g - 1) * A + U) * v) by (apply Rmult_le_compat; lra).
  assert (Rabs s * Rabs (ρ - 1) <= A * v) by (apply Rmult_le_compat; lra). nra.
Qed.

Lemma computed_error u η K m l x : 0 <= u < 1 -> 0 <= η -> computed u η K m l x ->
  Rabs (x - ∑ t ∈ l, t) <= (grown u K - 1) * sizes l + INR m * grown u K * η.
Proof.
  intros Hu Hη C. induction C as [t | K m n l r x y Cx IHx Cy IHy | K m l x δ C IH Hδ | K m l x δ C IH Hδ
                                  | K m l x e C IH He | K m l x C IH].
  - unfold sizes, grown. simpl. rewrite Rinv_1, !Rplus_0_r, Rminus_diag_eq, Rabs_R0 by reflexivity. lra.
  - unfold sizes in *. rewrite !Sum_app, plus_INR.
    replace (x + y - _) with ((x - ∑ t ∈ l, t) + (y - ∑ t ∈ r, t)) by ring.
    pose proof (Rabs_triang (x - ∑ t ∈ l, t) (y - ∑ t ∈ r, t)). lra.
  - assert (Rabs (1 + δ - 1) <= u / (1 - u)).
    { replace (1 + δ - 1) with δ by ring. apply Rle_trans with (1 := Hδ).
      apply Rmult_le_reg_r with (1 - u); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. nra. }
    pose proof (grown_ge_1 u K Hu). pose proof (pos_INR m).
    eapply Rle_trans; [apply (factor_step _ (sizes l) (INR m * grown u K * η) (grown u K) (grown u (S K)) u) |].
    + exact Hu.
    + apply Sum_abs.
    + repeat apply Rmult_le_pos; lra.
    + lra.
    + apply grown_S. exact Hu.
    + exact IH.
    + exact H.
    + apply Rplus_le_compat_l. right. rewrite (grown_S u K Hu). field. lra.
  - assert (Rabs (/ (1 + δ) - 1) <= u / (1 - u)).
    { assert (D : - u <= δ <= u) by (unfold Rabs in Hδ; destruct (Rcase_abs δ) in Hδ; lra).
      replace (/ (1 + δ) - 1) with (- δ * / (1 + δ)) by (field; lra).
      rewrite Rabs_mult, Rabs_Ropp, (Rabs_pos_eq (/ (1 + δ))) by (apply Rlt_le, Rinv_0_lt_compat; lra).
      apply Rmult_le_compat; [apply Rabs_pos | apply Rlt_le, Rinv_0_lt_compat; lra | exact Hδ |].
      apply Rinv_le_contravar; lra. }
    pose proof (grown_ge_1 u K Hu). pose proof (pos_INR m).
    eapply Rle_trans; [apply (factor_step _ (sizes l) (INR m * grown u K * η) (grown u K) (grown u (S K)) u) |].
    + exact Hu.
    + apply Sum_abs.
    + repeat apply Rmult_le_pos; lra.
    + lra.
    + apply grown_S. exact Hu.
    + exact IH.
    + exact H.
    + apply Rplus_le_compat_l. right. rewrite (grown_S u K Hu). field. lra.
  - pose proof (grown_ge_1 u K Hu). pose proof (grown_ge_1 u (S K) Hu). pose proof (pos_INR m).
    pose proof (sizes_nonneg l). rewrite S_INR.
    assert (G : grown u K <= grown u (S K)) by (rewrite (grown_S u K Hu); nra).
    pose proof (Rmult_le_compat_r _ _ _ H2 G).
    assert (INR m * grown u K * η <= INR m * grown u (S K) * η)
      by (apply Rmult_le_compat_r; [exact Hη|]; apply Rmult_le_compat_l; lra).
    pose proof (Rmult_le_compat_r η _ _ Hη H0).
    replace (x + e - ∑ t ∈ l, t) with ((x - ∑ t ∈ l, t) + e) by ring.
    pose proof (Rabs_triang (x - ∑ t ∈ l, t) e). lra.
  - pose proof (grown_ge_1 u K Hu). pose proof (pos_INR m). pose proof (sizes_nonneg l).
    assert (G : grown u K <= grown u (S K)) by (rewrite (grown_S u K Hu); pose proof (grown_ge_1 u (S K) Hu); nra).
    pose proof (Rmult_le_compat_r _ _ _ H1 G).
    assert (INR m * grown u K * η <= INR m * grown u (S K) * η)
      by (apply Rmult_le_compat_r; [exact Hη|]; apply Rmult_le_compat_l; lra). lra.
Qed.

(* ---- arithmetic that is honest in this sense ---- *)

Definition product (p : R * R) : R := fst p * snd p.

Lemma computed_later u η K K' m l x : (K <= K')%nat -> computed u η K m l x -> computed u η K' m l x.
Proof. induction 1; [auto | intros C; apply Unrounded; auto]. Qed.

Lemma computed_rounded u η K m l x y : Rabs (y - x) <= u * Rabs x -> computed u η K m l x ->
  computed u η (S K) m l y.
Proof.
  intros H C. destruct (Req_dec x 0) as [-> | N].
  - rewrite Rabs_R0, Rmult_0_r, Rminus_0_r in H.
    assert (E : y = 0) by (destruct (Req_dec y 0) as [E | E]; [exact E | apply Rabs_pos_lt in E; lra]).
    rewrite E. apply Unrounded. exact C.
  - replace y with (x * (1 + (y - x) / x)) by (field; exact N). apply Rounded; [exact C|].
    unfold Rdiv. rewrite Rabs_mult, Rabs_inv. apply Rabs_pos_lt in N.
    apply Rmult_le_reg_r with (Rabs x); [exact N|]. rewrite Rmult_assoc, Rinv_l, Rmult_1_r; lra.
Qed.

Lemma computed_lost u η K m l x y : Rabs (y - x) <= η -> computed u η K m l x -> computed u η (S K) (S m) l y.
Proof. intros H C. replace y with (x + (y - x)) by ring. apply Underflown; assumption. Qed.

(* Whatever underflows is flushed to zero, in products and in sums. Of n terms at most n results are lost: what is
   lost leaves a zero, and a sum of zeros loses nothing more. *)
Lemma flushed_computed (fl : R -> R) u η t : 0 <= u ->
  (forall x, Rabs (fl x - x) <= u * Rabs x \/ fl x = 0 /\ Rabs x <= η) ->
  exists m, (m <= length (terms t))%nat /\ (eval fl t <> 0 -> (S m <= length (terms t))%nat) /\
    computed u η (depth t) m (map product (terms t)) (eval fl t).
Proof.
  intros Hu Hfl. assert (Z : forall x, fl x <> 0 -> x <> 0).
  { intros x N ->. destruct (Hfl 0) as [H | [H _]]; [|tauto]. rewrite Rabs_R0, Rmult_0_r, Rminus_0_r in H.
    apply Rabs_pos_lt in N. lra. }
  assert (L : forall x, fl x = 0 -> Rabs x <= η -> Rabs (fl x - x) <= η)
    by (intros x -> H; rewrite Rminus_0_l, Rabs_Ropp; exact H).
  induction t as [a b | a b | l (ml & Ll & Nl & Cl) r (mr & Lr & Nr & Cr) | a b t (m & Lt & Nt & C)];
    cbn [eval terms depth]; rewrite ?map_app, ?app_length; cbn [length map].
  - exists 0%nat. repeat split; [lia | intros; lia | apply Term].
  - destruct (Hfl (a * b)) as [H | [E H]].
    + exists 0%nat. repeat split; [lia | intros; lia |]. eapply computed_rounded; [exact H | apply Term].
    + exists 1%nat. repeat split; [lia | intros N; tauto |]. eapply computed_lost; [apply L; assumption | apply Term].
  - set (D := max (depth l) (depth r)). set (x := eval fl l) in *. set (y := eval fl r) in *.
    assert (C : computed u η D (ml + mr) (map product (terms l) ++ map product (terms r)) (x + y))
      by (apply Added; [apply computed_later with (2 := Cl) | apply computed_later with (2 := Cr)]; unfold D; lia).
    destruct (Hfl (x + y)) as [H | [E H]].
    + exists (ml + mr)%nat. repeat split; [lia | | eapply computed_rounded; eassumption]. intros N. apply Z in N.
      destruct (Req_dec x 0) as [Ex | Nx]; [|specialize (Nl Nx); lia].
      destruct (Req_dec y 0) as [Ey | Ny]; [lra | specialize (Nr Ny); lia].
    + destruct (Req_dec x 0) as [Ex | Nx]; [destruct (Req_dec y 0) as [Ey | Ny]|].
      * exists (ml + mr)%nat. repeat split; [lia | intros N; tauto |]. apply Unrounded.
        replace (fl (x + y)) with (x + y) by lra. exact C.
      * specialize (Nr Ny). exists (S (ml + mr)). repeat split; [lia | intros N; tauto |].
        eapply computed_lost; [apply L; assumption | exact C].
      * specialize (Nl Nx). exists (S (ml + mr)). repeat split; [lia | intros N; tauto |].
        eapply computed_lost; [apply L; assumption | exact C].
  - assert (C1 : computed u η (depth t) m (a * b :: map product (terms t)) (a * b + eval fl t)).
    { change m with (0 + m)%nat. apply (Added u η (depth t) 0 m [a * b] _ (a * b)); [|exact C].
      apply computed_later with (K := 0%nat); [lia | apply Term]. }
    destruct (Hfl (a * b + eval fl t)) as [H | [E H]].
    + exists m. repeat split; [lia | intros; lia | eapply computed_rounded; eassumption].
    + exists (S m). repeat split; [lia | intros N; tauto |]. eapply computed_lost; [apply L; assumption | exact C1].
Qed.

(* Underflow is gradual: a product may lose η, a sum of two floats loses nothing. *)
Lemma gradual_computed (fl : R -> R) u η (float : R -> Prop) t :
  (forall x, Rabs (fl x - x) <= u * Rabs x \/ Rabs (fl x - x) <= η) -> (forall x, float (fl x)) ->
  (forall x y, float x -> float y -> Rabs (fl (x + y) - (x + y)) <= u * Rabs (x + y)) ->
  exists m, (m <= length (terms t))%nat /\ computed u η (depth t) m (map product (terms t)) (eval fl t).
Proof.
  intros Hfl Hfloat sums. enough (exists m, (m <= underflows t)%nat /\
    computed u η (depth t) m (map product (terms t)) (eval fl t)) as (m & Lm & C)
    by (exists m; split; [pose proof (underflows_le t); lia | exact C]).
  induction t as [a b | a b | l (ml & Ll & Cl) r (mr & Lr & Cr) | a b t (m & Lt & C)];
    cbn [eval terms depth underflows]; rewrite ?map_app; cbn [map].
  - exists 0%nat. split; [lia | apply Term].
  - destruct (Hfl (a * b)) as [H | H].
    + exists 0%nat. split; [lia |]. eapply computed_rounded; [exact H | apply Term].
    + exists 1%nat. split; [lia |]. eapply computed_lost; [exact H | apply Term].
  - set (D := max (depth l) (depth r)). set (x := eval fl l) in *. set (y := eval fl r) in *.
    assert (C : computed u η D (ml + mr) (map product (terms l) ++ map product (terms r)) (x + y))
      by (apply Added; [apply computed_later with (2 := Cl) | apply computed_later with (2 := Cr)]; unfold D; lia).
    destruct (sum_underflows l r) eqn:U.
    + destruct (Hfl (x + y)) as [H | H].
      * exists (ml + mr)%nat. split; [lia | eapply computed_rounded; eassumption].
      * exists (S (ml + mr)). split; [lia | eapply computed_lost; eassumption].
    + unfold sum_underflows in U. apply Bool.orb_false_elim in U. destruct U as [Ul Ur].
      exists (ml + mr)%nat. split; [lia |]. eapply computed_rounded; [|exact C].
      apply sums; apply (eval_float fl float Hfloat); assumption.
  - assert (C1 : computed u η (depth t) m (a * b :: map product (terms t)) (a * b + eval fl t)).
    { change m with (0 + m)%nat. apply (Added u η (depth t) 0 m [a * b] _ (a * b)); [|exact C].
      apply computed_later with (K := 0%nat); [lia | apply Term]. }
    destruct (Hfl (a * b + eval fl t)) as [H | H].
    + exists m. split; [lia | eapply computed_rounded; eassumption].
    + exists (S m). split; [lia |]. eapply computed_lost; eassumption.
Qed.

(* At most as many results underflow as there are roundings on a term's way. *)
(*> grad.rounded *)
Theorem grad_rounded u η K m l g' : 0 <= u < 1 -> 0 <= η -> INR K * u < 1 -> (m <= K)%nat ->
  computed u η K m l g' ->
  Rabs (g' - ∑ t ∈ l, t) <= gamma K u * (∑ t ∈ l, Rabs t) + INR K * (1 + gamma K u) * η.
Proof.
  intros Hu Hη HK Hm C. pose proof (computed_error u η K m l g' Hu Hη C) as E.
  pose proof (grown_gamma u K ltac:(lra) HK) as G. pose proof (grown_ge_1 u K Hu).
  pose proof (le_INR _ _ Hm). pose proof (pos_INR m). fold (sizes l).
  pose proof (Rmult_le_compat_r _ _ _ (sizes_nonneg l) G).
  assert (INR m * grown u K <= INR K * (1 + gamma K u)) by (apply Rmult_le_compat; lra).
  pose proof (Rmult_le_compat_r η _ _ Hη H3). lra.
Qed.

(* Sums of products in any order, with or without FMA, where underflow is flushed to zero. *)
Theorem grad_rounded_flushed (fl : R -> R) u η (t : tree) (l : list (R * R)) K : 0 <= u < 1 -> 0 <= η ->
  (forall x, Rabs (fl x - x) <= u * Rabs x \/ fl x = 0 /\ Rabs x <= η) ->
  Permutation (terms t) l -> (length l <= K)%nat -> INR K * u < 1 ->
  Rabs (eval fl t - ∑ p ∈ l, fst p * snd p) <=
    gamma K u * (∑ p ∈ l, Rabs (fst p * snd p)) + INR K * (1 + gamma K u) * η.
Proof.
  intros Hu Hη Hfl P Hl HK. rewrite <- (Permutation_length P) in Hl.
  destruct (flushed_computed fl u η t (proj1 Hu) Hfl) as (m & Hm & _ & C).
  pose proof (depth_le t). pose proof (products_round_le t).
  apply (computed_later u η _ K) in C; [|lia].
  pose proof (grad_rounded u η K m _ _ Hu Hη HK ltac:(lia) C) as E.
  rewrite !Sum_map in E. rewrite <- (Sum_perm _ _ (fun p => fst p * snd p) P).
  rewrite <- (Sum_perm _ _ (fun p => Rabs (fst p * snd p)) P). exact E.
Qed.

(* The same where underflow is gradual, in any binary format: η is half the smallest subnormal number. *)
Theorem grad_rounded_gradual emin prec choice (t : tree) (l : list (R * R)) K : (0 < prec)%Z ->
  let u := unit_roundoff prec in let η := half_smallest emin in
  Permutation (terms t) l -> (length l <= K)%nat -> INR K * u < 1 ->
  Rabs (eval (nearest_FLT emin prec choice) t - ∑ p ∈ l, fst p * snd p) <=
    gamma K u * (∑ p ∈ l, Rabs (fst p * snd p)) + INR K * (1 + gamma K u) * η.
Proof.
  intros Hp u η P Hl HK. rewrite <- (Permutation_length P) in Hl.
  pose proof (half_smallest_nonneg emin : 0 <= η) as Hη. pose proof (unit_roundoff_nonneg prec : 0 <= u) as Hu.
  assert (U : u < 1).
  { assert (N : (1 <= length (terms t))%nat) by (clear; induction t; simpl; rewrite ?app_length; lia).
    pose proof (le_INR 1 K ltac:(lia)) as K1. simpl in K1. pose proof (Rmult_le_compat_r u _ _ Hu K1). lra. }
  assert (F : forall x, Rabs (nearest_FLT emin prec choice x - x) <= u * Rabs x \/
                        Rabs (nearest_FLT emin prec choice x - x) <= η).
  { intros x. destruct (error_N_FLT radix2 emin prec Hp choice x) as (e & h & He & Hh & Z & E).
    unfold nearest_FLT. rewrite E. apply Rmult_integral in Z. destruct Z as [-> | ->].
    - right. replace (x * (1 + 0) + h - x) with h by ring. exact Hh.
    - left. replace (x * (1 + e) + 0 - x) with (e * x) by ring. rewrite Rabs_mult.
      apply Rmult_le_compat_r; [apply Rabs_pos | exact He]. }
  destruct (gradual_computed (nearest_FLT emin prec choice) u η (generic_format radix2 (FLT_exp emin prec)) t F
    ltac:(intros x; apply generic_format_round; [apply FLT_exp_valid; exact Hp | apply valid_rnd_N])
    (nearest_FLT_sum emin prec choice (prec_gt_0 := Hp))) as (m & Hm & C).
  pose proof (depth_le t). pose proof (products_round_le t).
  apply (computed_later u η _ K) in C; [|lia].
  pose proof (grad_rounded u η K m _ _ ltac:(lra) Hη HK ltac:(lia) C) as E.
  rewrite !Sum_map in E. rewrite <- (Sum_perm _ _ (fun p => fst p * snd p) P).
  rewrite <- (Sum_perm _ _ (fun p => Rabs (fst p * snd p)) P). exact E.
Qed.

(*< grad.rounded *)

(* The factors x, y that were summed are within ρ and σ of those of the real sum, and no larger than X and Y. *)
Lemma operands_moved (n : nat) (x x' ρ X y y' σ Y : nat -> R) (g' c d : R) : 0 <= c ->
  Rabs (g' - ∑ k < n, x' k * y' k) <= c * (∑ k < n, Rabs (x' k * y' k)) + d ->
  (forall k, Rabs (x' k - x k) <= ρ k /\ Rabs (x k) <= X k /\ Rabs (x' k) <= X k) ->
  (forall k, Rabs (y' k - y k) <= σ k /\ Rabs (y' k) <= Y k) ->
  Rabs (g' - ∑ k < n, x k * y k) <= c * (∑ k < n, X k * Y k) + d + ∑ k < n, (ρ k * Y k + X k * σ k).
Proof.
  intros Hc H Hx Hy.
  replace (g' - ∑ k < n, x k * y k) with
    ((g' - ∑ k < n, x' k * y' k) + ((∑ k < n, x' k * y' k) - ∑ k < n, x k * y k)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat.
  - apply Rle_trans with (1 := H). apply Rplus_le_compat_r, Rmult_le_compat_l; [exact Hc|].
    apply Sum_le. intros k _. rewrite Rabs_mult. destruct (Hx k) as (_ & _ & A), (Hy k) as (_ & B).
    apply Rmult_le_compat; auto using Rabs_pos.
  - rewrite <- Sum_minus. eapply Rle_trans; [apply Sum_abs|]. apply Sum_le. intros k _.
    destruct (Hx k) as (A & B & _), (Hy k) as (C & D).
    replace (x' k * y' k - x k * y k) with ((x' k - x k) * y' k + x k * (y' k - y k)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite !Rabs_mult.
    apply Rplus_le_compat; apply Rmult_le_compat; auto using Rabs_pos.
Qed.

(* The set is built around v, from z in place of the sizes' sum S; both were computed with a relative error μ of S. *)
Lemma around_measured (g' g v S z c d μ : R) : 0 <= c -> 0 <= μ <= 1 / 2 -> 0 <= S ->
  Rabs (g' - g) <= c * S + d -> Rabs (v - g) <= μ * S -> Rabs (z - S) <= μ * S ->
  Rabs (g' - v) <= (c + μ) * (z * (1 + 2 * μ)) + d.
Proof.
  intros Hc Hμ HS H Hv Hz. replace (g' - v) with ((g' - g) + - (v - g)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp.
  assert (A : S * (1 - μ) <= z) by (unfold Rabs in Hz; destruct (Rcase_abs (z - S)) in Hz; lra).
  assert (B : S <= z * (1 + 2 * μ)).
  { apply Rle_trans with (S * (1 - μ) * (1 + 2 * μ)); [|apply Rmult_le_compat_r; lra].
    replace (S * (1 - μ) * (1 + 2 * μ)) with (S + S * (μ * (1 - 2 * μ))) by ring.
    assert (0 <= S * (μ * (1 - 2 * μ))) by (repeat apply Rmult_le_pos; lra). lra. }
  pose proof (Rmult_le_compat_l (c + μ) _ _ ltac:(lra) B). lra.
Qed.
